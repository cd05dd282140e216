"""What a simulated run's answer adds to its figures: rates, prices, energy with hosts, notes, and windows of time."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario import simulate as page
from orrery.scenario import traffic, train_against
from orrery.scenario.schema import read_scenario
from orrery.scenario.sweep import grid
from orrery.scenario.sweep.grid import Axis, points_of

# --- windows


@pytest.mark.parametrize(("text", "window"), [("10:20", (10.0, 20.0)), (":5", (0.0, 5.0)), ("0:0.5", (0.0, 0.5))])
def test_windows_as_they_are_written(text, window):
    assert page.read_window(text) == window


@pytest.mark.parametrize("text", ["10", "20:10", "10:10", "-1:5", "5:inf", "a:b", "5:", "5:nan"])
def test_windows_that_are_none(text):
    with pytest.raises(ScenarioError, match="write START:END"):
        page.read_window(text)


# --- rates


def served(arrive_s):
    return SimpleNamespace(requests=SimpleNamespace(arrive_s=np.array(arrive_s), count=len(arrive_s)))


@pytest.mark.parametrize(
    ("settings", "arrive_s", "rate"),
    [
        ({"concurrency": 4}, [0.0, 1.0], math.inf),
        ({"rate": 3.0}, [0.0, 1.0], 3.0),
        ({"rate": 3.0, "trace": "chat"}, [0.0, 1.0], 3.0),
        ({}, [0.0, 1.0], math.inf),  # all at once
        ({"trace": "chat"}, [0.0, 1.0, 4.0], 0.5),  # two gaps in four seconds
        ({"trace": "chat"}, [0.0, 0.0], math.inf),
    ],
)
def test_the_rate_of_a_run(settings, arrive_s, rate):
    assert page._rate(read_scenario(settings), served(arrive_s)) == rate


def test_runs_that_would_take_hours_are_refused():
    def long(num_tokens):
        return SimpleNamespace(count=2, output_tokens=np.array([num_tokens, 1]))

    page._check_length(long(page.MAX_TOKENS - 1))
    with pytest.raises(ScenarioError, match="would take hours"):
        page._check_length(long(page.MAX_TOKENS))
    with pytest.raises(ScenarioError, match="batch: a simulation takes"):
        page.check_traffic(read_scenario({"batch": 1}))


# --- prices and energy


def pool(replicas, devices):
    deployment = SimpleNamespace(
        cluster=SimpleNamespace(device=SimpleNamespace(name="d")),
        layout=SimpleNamespace(num_devices=devices),
        model=SimpleNamespace(name="m"),
    )
    return SimpleNamespace(deployment=deployment, replicas=replicas)


def priced(monkeypatch, usd_per_device_s, power_w=90.0):
    """Two pools of 2 x 2 and 1 x 5 devices that draw 90 W together, 10 each; $2 a joule."""
    tariff = SimpleNamespace(
        notes=("t",), usd_per_s=lambda n, w: None if usd_per_device_s is None else n * usd_per_device_s + 2.0 * w
    )
    monkeypatch.setattr(page, "tariff_of", lambda *given: tariff)
    monkeypatch.setattr(page, "own_usd_per_hour", lambda *given: None)
    monkeypatch.setattr(page, "summary", lambda *given: SimpleNamespace(power_w=power_w, goodput=None))
    monkeypatch.setattr(page, "attained", lambda *given: None)
    service = SimpleNamespace(pools=(pool(2, 2), pool(1, 5)), num_devices=9, host_power_w=45.0)
    run = SimpleNamespace(notes=("r", "r"), idle_frac=0.0)
    return page.answer_of(read_scenario({"rate": 1.0}), service, run, ("n",))


def test_all_pools_are_paid_by_their_devices_and_their_part_of_the_power(monkeypatch):
    found = priced(monkeypatch, 1.0)
    assert found.about.usd_per_s == pytest.approx(9 * 1.0 + 2.0 * 90.0)
    assert (found.about.request_rate_per_s, found.about.model_id) == (1.0, "m")
    assert found.notes == ("n", "r", "t")
    assert priced(monkeypatch, None).about.usd_per_s is None


def test_machines_draw_beside_their_devices(monkeypatch):
    """Half as much again: 3 J an output token become 4.5."""
    found = priced(monkeypatch, 1.0)
    found.summary.energy_j_per_output_token = 3.0
    assert found.energy_j_per_output_token_with_host == pytest.approx(4.5)
    found.summary.power_w = 0.0
    assert found.energy_j_per_output_token_with_host is None
    found.summary.power_w, found.summary.energy_j_per_output_token = 90.0, None
    assert found.energy_j_per_output_token_with_host is None


def test_a_price_that_counts_idle_time_says_so_past_a_half():
    assert page._idle_notes(SimpleNamespace(idle_frac=0.5), 1.0) == ()
    assert page._idle_notes(SimpleNamespace(idle_frac=0.6), None) == ()
    (note,) = page._idle_notes(SimpleNamespace(idle_frac=0.6), 1.0)
    assert note.endswith("no step ran for 60 % of it")


def counted(**counters):
    return SimpleNamespace(simulated=SimpleNamespace(counters=counters))


def test_what_counters_say():
    assert page._swap_notes(counted()) == page._align_notes(counted()) == ()
    assert page._swap_notes(counted(swap_hit_frac=0.25, guessed_swaps=8.0))[0].startswith("swap: 25 % of 8 returns")
    (note,) = page._align_notes(counted(align_overhead_frac=0.1, shifted_rounds=3.0, rounds=9.0))
    assert "10 % of the time" in note
    assert note.endswith("in 3 of 9 rounds")


# --- loads


def loaded(monkeypatch, role="all", replicas=3, **settings):
    """A replica holds 2 requests a second."""
    monkeypatch.setattr(page, "memory_of", lambda deployment: "memory")
    monkeypatch.setattr(page, "highest_rate", lambda *given: 2.0)
    monkeypatch.setattr(page, "notes_near", lambda rate, highest: (rate, highest))
    one = SimpleNamespace(deployment=None, role=role, replicas=replicas)
    lengths = {"input_tokens": 8, "output_tokens": 4}
    return page._load_notes(read_scenario(lengths | settings), SimpleNamespace(pools=(one,)))


def test_the_load_of_all_replicas(monkeypatch):
    assert loaded(monkeypatch, rate=5.0) == (5.0, 6.0)
    assert loaded(monkeypatch) == ()
    assert loaded(monkeypatch, concurrency=3) == ()
    assert loaded(monkeypatch, rate=5.0, role="prompts") == ()
    assert loaded(monkeypatch, rate=5.0, trace="chat") == ()


# --- sweeps and layouts beside the best


def test_a_sweep_has_every_combination_up_to_a_limit(monkeypatch):
    base = read_scenario({"model": "llama-3.1-8b", "concurrency": 2, "slo": ["ttft:9", "tpot:5"]})
    points = points_of(base, (Axis(key="tp", values=("1", "2")), Axis(key="seed", values=("3", "default"))))
    assert [(p.scenario.tp, p.scenario.seed) for p in points] == [(1, 3), (1, None), (2, 3), (2, None)]
    (rated,) = points_of(base, (Axis(key="rate", values=("4",)),))
    assert (rated.scenario.rate, rated.scenario.concurrency) == (4.0, None)
    (other,) = points_of(base, (Axis(key="slo", values=("ttft:7",)),))
    assert set(other.scenario.slo) == {"tpot:5", "ttft:7"}
    monkeypatch.setattr(grid, "MAX_POINTS", 4)
    four = (Axis(key="tp", values=("1", "2")), Axis(key="seed", values=("3", "4")))
    assert len(points_of(base, four)) == 4
    with pytest.raises(ScenarioError, match="5 runs are too many"):
        points_of(base, (Axis(key="seed", values=("1", "2", "3", "4", "5")),))


def test_a_layout_fits_what_it_fills_to_the_last_byte():
    def against(need):
        return train_against.Against(answer=None, num_faster=3, need_bytes=need, have_bytes=80.0)

    assert (against(80.0).fits, against(80.5).fits, against(1.0).rank) == (True, False, 4)


def test_lengths_beside_a_trace_take_the_place_of_its_own():
    own, (*_, says) = traffic.traffic_of(read_scenario({"trace": "chat"}))
    told, (*_, other) = traffic.traffic_of(read_scenario({"trace": "chat", "input_tokens": 7, "rate": 3}))
    assert own.longest_tokens > own.input_tokens > 0
    assert (told.input_tokens, told.request_rate_per_s, told.longest_tokens) == (7.0, 3.0, 0.0)
    assert told.output_tokens == own.output_tokens
    assert other.endswith("at 3 requests/s, as asked")
    assert "as asked" not in says
    stated, notes = traffic.traffic_of(read_scenario({"input_tokens": 7, "output_tokens": 2, "input_tokens_std": 3}))
    assert (stated.input_tokens_std, stated.output_tokens_std, stated.request_rate_per_s) == (3.0, 0.0, 0.0)
    assert notes == ()
