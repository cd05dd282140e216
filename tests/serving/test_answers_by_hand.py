"""Answers put together from round pieces: estimates, their doubts, highest rates."""

from dataclasses import dataclass, replace
from math import exp, inf
from types import SimpleNamespace

import numpy as np
import pytest
from round_pieces import Layout, deployed, one

from orrery.base.cost import Interval, Spread
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.execution.memory import Infeasible
from orrery.serving import capacity, estimate, extrapolation, uncached
from orrery.serving.capacity import bisected, closed_form, is_sustained
from orrery.serving.extrapolation import (
    UNMEASURED,
    ExtrapolationShare,
    bounds_of,
    extrapolation_share,
    factors_of,
    kind_of_run,
    notes_of,
    shared_frac,
    wider_by,
)
from orrery.serving.workload import Traffic, Workload, loop_requests

# --- estimates


def steps(**given):
    ticks = SimpleNamespace(
        time_s=one(9, 2, 9, 4), host_s=one(0, 1, 0, 5), done=SimpleNamespace(time_s=one(9, 2, 9, 4), parts=())
    )
    usual = {"ticks": ticks, "decode_entry": 1, "prompt_entry": 3, "prompt_share": 0.25}
    return estimate.Steps(**(usual | given))


def test_power_by_shares_of_the_time(monkeypatch):
    """Decodes draw 300 W for three quarters of the busy time and prompts 500 W, busy for half of it, above 100 W idle;
    whether the limit is hit says the step that takes most of the time."""
    asked = []

    def draws(deployment, done, entries):
        asked.append(entries)
        return [(300.0, 0.5), (500.0, 1.5)]

    monkeypatch.setattr(estimate, "steps_draws", draws)
    assert steps(busy_frac=0.5).draw(deployed()) == (100.0 + 0.5 * (350.0 - 100.0), False)
    assert asked[0] == [((1,), 2.0), ((3,), 4.0)]
    assert steps(prompt_share=0.75).draw(deployed()) == (450.0, True)
    assert steps(prompt_share=0.5).draw(deployed())[1] is False
    assert steps(prompt_share=0.75, prompts_run_alone=True).power_w(deployed()) == 450.0
    assert asked[3] == [((1,), 2.0), ((3, 1), 4.0)]


def test_a_step_unfolds_with_its_joules(monkeypatch):
    monkeypatch.setattr(estimate, "steps_power_w", lambda deployment, done, entries, time_s: 10.0 * len(entries))
    monkeypatch.setattr(estimate, "explain", lambda deployment, done, entry, name, energy_j: (entry, name, energy_j))
    assert steps().unfold(deployed(), 3, "x") == (3, "x", 40.0)
    assert steps(prompts_run_alone=True).unfold(deployed(), 3, "x") == (3, "x", 80.0)


def test_the_host_or_a_resource_is_the_limit(monkeypatch):
    monkeypatch.setattr(estimate, "limit_of", lambda done, entry: f"resource {entry}")
    assert steps().limit() == "resource 1"
    assert steps(prompt_share=0.5).limit() == "resource 1"
    assert steps(prompt_share=0.75).limit() == "host"


def test_shares_of_the_time_with_a_step_under_way():
    """Eight in flight on two replicas of four stages keep every stage busy, six of them three quarters."""
    deployment = deployed(Layout(dp=2, pp=4))
    assert estimate.busy_frac(deployment, 8.0, is_open=False) == 1.0
    assert estimate.busy_frac(deployment, 6.0, is_open=False) == 0.75
    assert estimate.busy_frac(deployment, 4.0, is_open=True) == pytest.approx(1 - exp(-0.5))


@pytest.fixture
def finished(monkeypatch):
    """Only what each mode found, before power and intervals."""
    monkeypatch.setattr(estimate, "memory_of", lambda d: "memory")
    monkeypatch.setattr(estimate, "_finish", lambda deployment, memory, workload, answer: answer)

    def as_it_is(deployment, memory, inputs, outputs):
        return SimpleNamespace(deployment=deployment, memory=memory, tokens_per_step=2.0)

    monkeypatch.setattr(estimate, "drafted", as_it_is)
    monkeypatch.setattr(estimate, "in_steps", lambda found, workload: workload)
    state = SimpleNamespace(ticks="t", decode_entry=5, prompt_entry=7, mixed_share=one(0.1, 0.4), queue_s=one(6))
    points = SimpleNamespace(
        ttft_s=one(3),
        tpot_s=one(0.5),
        requests_per_s=one(2),
        concurrency=one(16),
        state=state,
        highest_requests_per_s=8.0,
    )
    return points


def asked(mode, **given):
    return estimate.estimate(deployed(Layout(dp=2)), Workload(mode=mode, input_tokens=100, output_tokens=11, **given))


def test_a_static_batch_is_dealt_to_replicas(finished, monkeypatch):
    told = []
    run = SimpleNamespace(ttft_s=1.0, tpot_s=0.5, latency_s=8.0, batch=6.0, prompt_share=0.2, ticks="t")

    def static(deployment, memory, batch, inputs, outputs):
        told.append((batch, inputs, outputs))
        return run

    monkeypatch.setattr(estimate.runs, "static_run", static)
    found = asked("static", batch_size=16)
    assert told == [(8.0, 100, 11)]
    assert (found.tpot_s, found.latency_s, found.requests_per_s, found.concurrency) == (0.25, 8.0, 2.0, 12.0)
    assert (found.steps.decode_entry, found.steps.prompt_entry, found.steps.prompt_share) == (1, 3, 0.2)
    asked("static", batch_size=1)
    assert told[1][0] == 1.0
    with pytest.raises(ScenarioError, match="N > 0"):
        asked("static")


def test_all_at_once_is_ten_batches_where_nobody_says(finished, monkeypatch):
    told = []
    run = SimpleNamespace(ttft_s=1.0, tpot_s=0.5, latency_s=8.0, batch=6.0, state=finished.state)

    def offline(deployment, memory, requests, inputs, outputs):
        told.append(requests)
        return run

    monkeypatch.setattr(estimate.runs, "batch_limit", lambda *_: 6.0)
    monkeypatch.setattr(estimate.runs, "offline_run", offline)
    found = asked("offline")
    assert (told[0], found.requests_per_s, found.concurrency) == (60.0, 15.0, 12.0)
    assert (found.steps.prompt_share, found.steps.decode_entry, found.steps.prompt_entry) == (0.4, 5, 7)
    assert found.steps.prompts_run_alone is False
    assert asked("offline", num_requests=40).requests_per_s == 5.0
    asked("offline", num_requests=1)
    assert told[1:] == [20.0, 1.0]


def test_loops_as_points(finished, monkeypatch):
    told = []

    def sweep(deployment, memory, inputs, outputs, concurrency, requests, std):
        told.append((concurrency.tolist(), requests, std))
        return finished

    monkeypatch.setattr(estimate.online, "sweep", sweep)
    monkeypatch.setattr(estimate.online, "at_rate", lambda *given: told.append(given[4:]) or finished)
    monkeypatch.setattr(estimate.saturation, "waiting_notes", lambda *_: ("waits",))
    monkeypatch.setattr(estimate.saturation, "notes_near", lambda rate, highest: (f"{rate:g} of {highest:g}",))
    closed = asked("closed", concurrency=16, output_tokens_std=3.0)
    assert told[0] == ([16.0], 160.0, 3.0)
    assert (closed.ttft_s, closed.tpot_s, closed.latency_s) == (3.0, 0.25, 3.0 + 10 * 0.5)
    assert (closed.requests_per_s, closed.concurrency, closed.waiting_s, closed.load_frac) == (2.0, 16.0, 6.0, 0.0)
    assert (closed.notes, closed.steps.busy_frac) == (("waits",), 1.0)
    asked("closed", concurrency=16, num_requests=33)
    assert told[1][1] == 33.0
    opened = asked("open", request_rate_per_s=4.0, num_requests=7)
    assert told[2] == (4.0, 7.0)
    assert (opened.load_frac, opened.waiting_s, opened.notes) == (0.5, 0.0, ("4 of 8",))
    assert opened.steps.busy_frac == pytest.approx(1 - exp(-8.0))


def test_an_answer_with_its_power_and_tokens(monkeypatch):
    """2 requests/s of 100 + 11 tokens; four devices of 200 W and their machines of 50 W each."""
    told = []
    monkeypatch.setattr(estimate.Steps, "draw", lambda self, deployment: (200.0, True))
    monkeypatch.setattr(estimate.Steps, "limit", lambda self: "memory")
    monkeypatch.setattr(estimate, "extrapolation_share", lambda done: "doubt")
    monkeypatch.setattr(estimate, "kind_of_run", lambda *_: "open")
    monkeypatch.setattr(estimate, "factors_of", lambda *_: None)
    monkeypatch.setattr(estimate, "bounds_of", lambda *_: None)
    monkeypatch.setattr(estimate, "notes_of", lambda *_: ("doubtful",))
    monkeypatch.setattr(
        estimate, "joint", lambda values, figures, factors, bounds: told.append((values, figures)) or {}
    )
    device = SimpleNamespace(idle_power_w=1.0, host_power_w=50.0, name="X", power_limit_w=700.0)
    deployment = deployed(Layout(dp=2), cluster=SimpleNamespace(device=device))
    memory = SimpleNamespace(usable_bytes=77.0)
    answer = estimate._Answer(
        ttft_s=1.0, tpot_s=0.5, latency_s=6.0, requests_per_s=2.0, concurrency=12.0, steps=steps(), load_frac=1.25,
        notes=("near",), waiting_s=0.75,
    )  # fmt: skip
    workload = Workload(mode="open", input_tokens=100, output_tokens=11)
    found = estimate._finish(deployment, memory, workload, answer)
    assert (found.output_tokens_per_s, found.total_tokens_per_s) == (22.0, 222.0)
    assert (found.power_w, found.host_power_w, found.num_devices) == (800.0, 200.0, 4)
    assert found.energy_j_per_token == pytest.approx(800 / 22)
    assert found.energy_j_per_token_with_host == pytest.approx(1000 / 22)
    assert (found.rate_used_frac, found.peak_memory_bytes, found.bound_by) == (1.0, 77.0, "memory")
    assert found.notes[:2] == ("doubtful", "near")
    assert "700 W" in found.notes[2]
    values, figures = told[0]
    assert values["energy_j_per_token"] == pytest.approx(800 / 22)
    assert (figures.steps, figures.waiting_s, figures.load_frac, figures.is_one_request) == (10.0, 0.75, 1.25, True)
    silent = estimate._finish(deployment, memory, replace(workload, mode="offline", output_tokens=0), answer)
    assert silent.energy_j_per_token == pytest.approx(800 / 200)
    assert silent.energy_j_per_token_with_host == pytest.approx(1000 / 200)
    assert (told[1][1].steps, told[1][1].is_one_request, silent.rate_used_frac) == (0.0, False, 1.0)
    under = estimate._finish(deployment, memory, workload, replace(answer, load_frac=0.5))
    assert under.rate_used_frac == 0.5


def test_the_cache_is_whole_or_as_full_as_it_is():
    """60 of 100 bytes are cache; a sequence of 111 tokens has a byte for ten: three fill 33.3, nine all of it."""

    @dataclass(frozen=True)
    class Cache:
        bytes_per_token: float = 0.1
        windows: tuple = ()
        bytes_per_sequence: float = 0.0

    memory = SimpleNamespace(usable_bytes=100.0, kv_capacity_bytes=60.0, cache=Cache())
    engine = SimpleNamespace(reserves_cache=False)
    deployment = deployed(engine=engine, compression=estimate.NOTHING)
    workload = Workload(mode="static", input_tokens=100, output_tokens=11)
    peak = estimate._peak_memory_bytes
    assert peak(deployment, memory, workload, 3.0) == pytest.approx(40.0 + 33.3)
    assert peak(deployment, memory, workload, 9.0) == 100.0
    half = replace(estimate.NOTHING, kept_tokens_frac=0.5)
    assert peak(deployed(engine=engine, compression=half), memory, workload, 3.0) == pytest.approx(40.0 + 18.3)
    assert peak(deployed(), memory, workload, 3.0) == 100.0


def test_workloads_where_nobody_says():
    assert (loop_requests(3), loop_requests(10), loop_requests(11)) == (100, 100, 110)
    traffic = Traffic(input_tokens=100, output_tokens=50)
    assert (traffic.fitting_tokens, replace(traffic, longest_tokens=200).fitting_tokens) == (150, 200)
    assert (traffic.load_text, replace(traffic, num_users=1200).load_text) == ("0 requests/s", "1,200 users")
    closed, opened = traffic.closed(8, 90), traffic.open(2.5)
    assert (closed.concurrency, closed.num_requests, opened.request_rate_per_s) == (8, 90, 2.5)
    usual = Workload(mode="open", input_tokens=1, output_tokens=1)
    assert (usual.batch_size, usual.concurrency, usual.num_requests, usual.num_distinct_prompts) == (0, 0, 0, 0)
    assert (usual.request_rate_per_s, usual.output_tokens_std, usual.keeps_cache) == (0.0, 0.0, True)


def test_without_a_cache_a_run_is_a_sum_of_prompts(monkeypatch):
    """Prompts of 10 to 14 tokens take 1 to 1.4 s: 6 s, of which 5 follow the first; two requests; 700 W."""

    @dataclass(frozen=True)
    class Answer:
        latency_s: float
        ttft_s: float = 2.0
        requests_per_s: float = 4.0
        output_tokens_per_s: float = 1.0
        total_tokens_per_s: float = 1.0
        tpot_s: float = 0.0
        power_w: float = 700.0
        energy_j_per_token: float = 0.0
        own_notes: tuple = ("a",)
        intervals: object = None

    around = Interval(low_80=1.0, high_80=3.0, low_95=0.5, high_95=4.0, because="")
    lengths = []

    def prompt(deployment, workload):
        lengths.append(workload.input_tokens)
        assert workload.output_tokens == 1.0
        kept = {"latency_s": around, "requests_per_s": around, "power_w": around}
        return Answer(latency_s=workload.input_tokens / 10, intervals=kept)

    monkeypatch.setattr(uncached, "estimate", prompt)
    workload = Workload(mode="static", input_tokens=10, output_tokens=5, batch_size=2)
    found = uncached.without_cache(None, workload)
    assert lengths == [10, 11, 12, 13, 14]
    assert (found.ttft_s, found.latency_s) == (1.0, pytest.approx(6.0))
    assert (found.tpot_s, found.requests_per_s) == (pytest.approx(5 / 4), pytest.approx(2 / 6))
    assert found.output_tokens_per_s == pytest.approx(10 / 6)
    assert found.total_tokens_per_s == pytest.approx(30 / 6)
    assert found.energy_j_per_token == pytest.approx(700 / (10 / 6))
    assert found.intervals["latency_s"].low_80 == pytest.approx(6.0 / 1.4)
    assert found.intervals["tpot_s"].high_80 == pytest.approx(3 * 1.25 / 1.4)
    assert found.intervals["power_w"] is around
    lengths.clear()
    uncached.without_cache(None, replace(workload, output_tokens=81))
    assert lengths == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    single = uncached.without_cache(None, replace(workload, output_tokens=1))
    assert (single.tpot_s, single.latency_s) == (0.0, 1.0)


# --- doubts


def part(time_s, origin="device", outside="", name="gemm"):
    calibration = SimpleNamespace(origin=origin) if origin else None
    return SimpleNamespace(name=name, time_s=np.array(time_s), calibration=calibration, outside=lambda: outside)


def test_shares_of_time_that_rest_on_less():
    """Of 10 s 4 are another device's, 3 beyond what was measured; parts without constants do not count."""
    parts = (
        part([2.0, 1.0], outside="m = 9"),
        part([4.0], "relatives"),
        part([3.0]),
        part([90.0], ""),
        part([0.0], outside="m = 9"),
    )
    found = extrapolation_share(SimpleNamespace(parts=parts))
    assert (found.borrowed_frac, found.outside_frac, found.examples) == (0.4, 0.3, ("gemm (m = 9)",))
    nothing = extrapolation_share(SimpleNamespace(parts=()))
    assert (nothing.borrowed_frac, nothing.outside_frac) == (0.0, 0.0)


def doubt(borrowed=0.0, outside=0.0, examples=()):
    return ExtrapolationShare(borrowed_frac=borrowed, outside_frac=outside, examples=examples)


def test_intervals_widen_by_shares():
    """All borrowed: 1.6 times; all outside: 1.5 times; no version: 1.25 times; below a twentieth of either: not."""
    assert wider_by(doubt(), has_version=True) == (1.0, "")
    assert wider_by(doubt(1.0), has_version=True)[0] == pytest.approx(1.6)
    assert wider_by(doubt(0.05), has_version=True)[0] == pytest.approx(1.03)
    assert wider_by(doubt(0.0, 0.5), has_version=True)[0] == pytest.approx(1.25)
    assert wider_by(doubt(0.049, 0.049), has_version=True)[0] == 1.0
    assert wider_by(doubt(1.0, 1.0), has_version=False)[0] == pytest.approx(1.6 * 1.5 * 1.25)


def doubted(version="1", unrest=1.0, experts=False, **engine):
    device = SimpleNamespace(name="X", generation="g", unrest_ratio=unrest)
    blocks = [SimpleNamespace(experts=experts)]
    given = SimpleNamespace(**({"name": "e", "version": version, "has_eras": True, "spreads": {}} | engine))
    return SimpleNamespace(
        engine=given, cluster=SimpleNamespace(device=device), model=SimpleNamespace(blocks=blocks), formats=None
    )


def test_what_the_doubt_of_a_run_goes_by():
    assert kind_of_run(doubted(), "open") == "open"
    assert kind_of_run(doubted(experts=True), "open", 2) == "pools experts"
    measured = Spread(low_80_ratio=0.8, high_80_ratio=1.25, low_95_ratio=0.5, high_95_ratio=2.0, because="runs")
    known = doubted(spreads={"open.tpot_s": measured})
    found = factors_of(known, "open", doubt())
    assert (found.pace, found.first) == (measured, UNMEASURED)
    assert (UNMEASURED.low_80_ratio, UNMEASURED.high_80_ratio) == (0.6, 1.6)
    assert (UNMEASURED.low_95_ratio, UNMEASURED.high_95_ratio) == (0.4, 2.5)
    wide = factors_of(known, "open", doubt(1.0)).pace
    assert wide.high_95_ratio == pytest.approx(2.0**1.6)
    restless = factors_of(doubted(unrest=1.5, spreads={"open.tpot_s": measured}), "open", doubt()).pace
    assert restless.high_80_ratio > measured.high_80_ratio
    assert "1.50 times further out" in restless.because


def test_notes_on_doubts():
    assert notes_of(doubted(), doubt(0.04, 0.04)) == ()
    assert notes_of(doubted(version="", has_eras=False), doubt()) == ()
    notes = notes_of(doubted(version="", unrest=1.5), doubt(0.05, 0.05, ("a", "b", "c", "d")))
    assert len(notes) == 4
    assert "a; b; c;" in notes[3]
    assert shared_frac(doubted(), doubted()) == 0.7
    assert shared_frac(doubted(), doubted(version="2")) == 0.0


def test_bounds_that_no_run_can_pass(monkeypatch):
    """Half of 600 bytes on each of two stages, at 100 bytes/s: 6 s a token, 3 s with one guess held; with two ranks of
    experts half. 2 x 50 operations for each of 10 prompt tokens at 5/s of four devices: 50 s."""
    monkeypatch.setattr(extrapolation, "shard", lambda d: SimpleNamespace(weight_bytes=600.0))
    monkeypatch.setattr(extrapolation, "get_format", lambda name: SimpleNamespace(rates=("bf16",)))
    device = SimpleNamespace(
        peak_flops_per_s=lambda rates: (None, 5.0),
        memory_bandwidth_bytes_per_s=100.0,
        idle_power_w=1.0,
        power_limit_w=9.0,
    )

    def bounded(experts=False, dp=2, head=None, active=500):
        return SimpleNamespace(
            cluster=SimpleNamespace(device=device),
            model=SimpleNamespace(
                num_active_parameters=active,
                num_parameters=1000,
                blocks=[SimpleNamespace(experts=experts, num_active_parameters=50)],
            ),
            layout=SimpleNamespace(pp=2, dp=dp, num_devices=4),
            formats=SimpleNamespace(activations="bf16"),
            draft_head=head,
        )

    workload = Workload(mode="open", input_tokens=10, output_tokens=1)
    found = bounds_of(bounded(), workload)
    assert (found.least_tpot_s, found.least_ttft_s) == (6.0, 50.0)
    assert (found.least_power_w, found.most_power_w) == (4.0, 36.0)
    assert bounds_of(bounded(experts=True), workload).least_tpot_s == 3.0
    assert bounds_of(bounded(head=SimpleNamespace(num_tokens=1)), workload).least_tpot_s == 3.0
    assert bounds_of(bounded(active=4000), workload).least_tpot_s == 12.0


# --- highest rates


def test_bisection_between_what_is_met_and_what_is_not():
    """The root of the product in the middle: from 1 and 4 on 2, then 2.83, until they are half apart at most."""
    tried = []

    def meets(rate):
        tried.append(rate)
        return rate <= 2.5

    assert bisected(meets, 1.0, 4.0, 0.5) == (2.0, pytest.approx(2.0 * 2**0.5))
    assert tried == [1.0, 4.0, 2.0, pytest.approx(2.0 * 2**0.5)]
    tried.clear()
    assert bisected(meets, 1.0, 2.0, 10.0) == (2.0, 4.0)
    assert bisected(lambda rate: rate < 1e-9, 4096.0, 8192.0, 0.1) == (0.0, 1.0)
    low, high = bisected(lambda rate: rate <= 1.5, 4096.0, 8192.0, 3.0)
    assert (low, high) == (1.0, pytest.approx(8**0.5))  # 4096, 64, 8, and its root
    assert bisected(lambda rate: True, 1.0, 2.0, 1.0) == (4096.0, 8192.0)
    for wrong in ((0.0, 1.0), (2.0, 2.0), (3.0, 2.0)):
        with pytest.raises(ValueError, match="low"):
            bisected(meets, *wrong, 0.5)


def ran(arrive, admitted, finish, after=()):
    return SimpleNamespace(
        arrive_s=one(*arrive),
        admitted_s=one(*admitted),
        finish_s=one(*finish),
        requests=SimpleNamespace(after=np.array(after, np.int64)),
    )


def test_a_queue_that_grows_and_one_that_does_not():
    """Of 100 arrivals the third quarter finds one waiting, the last two: one more over 25 arrivals is 4 %."""
    arrive = np.arange(100.0)
    wait = np.where(arrive < 50, 0.5, np.where(arrive < 75, 0.5, 1.5))
    late = ran(arrive, arrive + wait, arrive + wait + 0.1)
    assert capacity._rise_frac(arrive, arrive, np.sort(arrive + wait)) == pytest.approx(24 / 25 / 25)
    assert not is_sustained(late)
    assert is_sustained(ran(arrive, arrive + 0.5, arrive + 0.9))
    # in flight may grow by a tenth: 2 more over 25
    life = np.where(arrive < 75, 0.5, 2.5)
    assert is_sustained(ran(arrive, arrive + 0.1, arrive + life))
    longer = np.where(arrive < 75, 0.5, 3.5)
    assert not is_sustained(ran(arrive, arrive + 0.1, arrive + longer))
    assert not is_sustained(ran([1.0], [1.0], [inf]))
    assert is_sustained(ran([1.0, 2.0], [1.0, 9.0], [2.0, 20.0]))  # too few to tell
    assert not is_sustained(ran([1.0], [1.0], [2.0], after=[0]))


def test_the_rise_counts_starts_of_conversations():
    """Two arrivals for each start: the rise is shared by both."""
    starts = np.arange(0.0, 100.0, 2.0)
    arrive = np.arange(100.0)
    leave = np.sort(np.where(arrive < 75, arrive + 0.5, arrive + 4.5))
    assert capacity._rise_frac(starts, arrive, leave) == pytest.approx(3.5 / (12 * 2), rel=0.2)


def test_the_rate_of_the_closed_form(monkeypatch):
    """Two replicas of prompts at most 5/s each and one of answers at most 8/s: 8/s; places are 2 x 2 x 6 or 2 x 6."""
    told = []

    def opened(deployment, memory, inputs, outputs, ladder):
        told.append((outputs, ladder[-1], ladder.size))
        return SimpleNamespace(requests_per_s=one(1.0, 5.0 if outputs == 1.0 else 8.0, 3.0))

    monkeypatch.setattr(capacity, "memory_of", lambda d: "memory")
    monkeypatch.setattr(capacity, "batch_limit", lambda *_: 6.0)
    monkeypatch.setattr(capacity, "open_loop", opened)
    deployment = SimpleNamespace(layout=SimpleNamespace(dp=2))
    pools = [
        SimpleNamespace(deployment=deployment, replicas=2, role="prompts"),
        SimpleNamespace(deployment=deployment, replicas=1, role="answers"),
    ]
    sample = SimpleNamespace(input_tokens=one(10, 30), output_tokens=one(4, 6))
    assert closed_form(SimpleNamespace(pools=pools), sample) == (8.0, 24.0)
    assert told == [(1.0, pytest.approx(12.0), 8), (5.0, pytest.approx(12.0), 8)]
    nothing = Infeasible(what="", need=1.0, have=0.0, unit="", smallest_change="")
    monkeypatch.setattr(capacity, "memory_of", lambda d: nothing)
    assert closed_form(SimpleNamespace(pools=pools), sample) == (1.0, 1.0)

    def beyond(d):
        raise OutOfRange("beyond")

    monkeypatch.setattr(capacity, "memory_of", beyond)
    assert closed_form(SimpleNamespace(pools=pools), sample) == (1.0, 1.0)
