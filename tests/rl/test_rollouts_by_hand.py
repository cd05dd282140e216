"""Rollouts and their pace by hand: an engine that writes a token a second for everybody."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from rl_jobs import DEFAULTS, job

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.rl import engine, pace, rollout
from orrery.rl.engine import Begun
from orrery.rl.job import Reward, RlJob
from orrery.rl.lengths import Lengths
from orrery.rl.pace import OverlappedSteps, least_period_s
from orrery.serving.simulation.result import TIMELINE

FULL = Infeasible(what="cache", need=2.0, have=1.0, unit="tokens", smallest_change="Use more.")


def test_what_a_job_leaves_unsaid():
    assert {
        "num_updates": 1,
        "num_epochs": 1,
        "algorithm": "grpo",
        "has_reference": True,
        "has_old_logprobs": True,
        "critic": None,
        "reward": Reward(),
        "is_packed": True,
        "is_colocated": True,
        "offloads": True,
        "max_staleness": 0,
        "updates_in_flight": True,
        "tail": "wait",
        "oversampling_ratio": 1.0,
        "kept_frac": 1.0,
        "seed": 0,
    } == DEFAULTS
    assert (Reward().sample_s, Reward().workers, Reward().model) == (0.0, 1, None)


@pytest.fixture
def a_token_a_second(monkeypatch):
    """Batches by their number, a list of (prompt, response) each; every sequence writes from its first second on."""

    def served(batches, last=None):
        asked = []

        def drawn(prompt, response, prompts, group, seed, batch=0):
            asked.append((batch, prompts, group))
            rows = batches[batch] if batch < len(batches) else last
            assert len(rows) == prompts * group
            return Lengths(prompt=np.array([p for p, _ in rows]), response=np.array([r for _, r in rows]))

        def run(job, begun, arrive_s=None, in_flight=0):
            ends = begun.output_tokens.astype(float) + (0.0 if arrive_s is None else arrive_s)
            return SimpleNamespace(
                finish_s=ends,
                first_token_s=np.ones(ends.size),
                machine=np.arange(ends.size) % job.replicas,
                preemptions=np.zeros(ends.size),
                energy_j=2.0 * ends.max(),
                duration_s=ends.max(),
            )

        monkeypatch.setattr(rollout, "lengths_of", drawn)
        monkeypatch.setattr(rollout, "run", run)
        return asked

    return served


def test_waiting_takes_the_longest_and_writes_all(a_token_a_second):
    asked = a_token_a_second([[(5, n) for n in (3, 1, 2, 4, 10, 9, 8, 7, 6, 5)]])
    found = rollout.rollouts(job(num_prompts=5, group=2, replicas=2))
    assert asked == [(0, 5, 2)]
    assert (found.time_s, found.tail_s, found.written_tokens, found.energy_j) == (10.0, 1.0, 55.0, 20.0)
    assert found.busy_s == 9.5  # one until 10 s, the other until 9 s
    assert found.rounds[0].lengths.total.sum() == 105


def test_groups_that_teach_nothing_are_drawn_and_left_out(a_token_a_second):
    asked = a_token_a_second([[(5, n) for n in (1, 2, 3, 4, 5, 6)]])
    found = rollout.rollouts(job(num_prompts=2, group=2, kept_frac=0.7))  # 2 / 0.7 are three groups
    assert asked == [(0, 3, 2)]
    assert (found.time_s, found.written_tokens) == (6.0, 21.0)
    assert found.rounds[0].lengths.response.tolist() == [1, 2, 3, 4]


def test_partial_rollouts_take_the_first_and_go_on_with_the_rest(a_token_a_second):
    """Of 10 and 30 the first ends at 10 s, the other has written 10; its 20 beat a new 25, of which 20 are written,
    whose last 5 come first in the next step: steps of 5 s and 20 s in turn, 10 and 40 tokens."""
    asked = a_token_a_second([[(3, 10), (3, 30)]], last=[(4, 25)])
    found = rollout.rollouts(job(tail="partial", oversampling_ratio=2.0))
    assert asked == [(0, 2, 1)] + [(n, 1, 1) for n in range(1, 7)]
    assert [r.time_s for r in found.rounds] == [5.0, 20.0, 5.0]
    assert [r.written_tokens for r in found.rounds] == [10.0, 40.0, 10.0]
    assert [r.lengths.response.tolist() for r in found.rounds] == [[25]] * 3
    assert [r.lengths.prompt.tolist() for r in found.rounds] == [[4]] * 3


def test_a_group_is_done_with_its_last_response(a_token_a_second, monkeypatch):
    """Groups of two end after 30, 20 and 25 s, though the first response of all comes after 1 s; two are needed."""
    a_token_a_second([[(1, 1), (1, 30), (2, 15), (2, 20), (3, 25), (3, 24)]])
    monkeypatch.setattr(rollout, "ROUNDS", 1)
    (found,) = rollout.rollouts(job(tail="partial", num_prompts=2, group=2, oversampling_ratio=1.5)).rounds
    assert found.time_s == 25.0
    assert found.lengths.response.tolist() == [15, 20, 25, 24]
    assert found.written_tokens == 1 + 25 + 15 + 20 + 25 + 24


def test_tail_batching_puts_the_slow_off_to_a_round_of_their_own(a_token_a_second):
    """Of two prompts with two responses each the second has one after 5 s; the first prompt's first response waits."""
    a_token_a_second([[(3, 10), (3, 20), (4, 5), (4, 40)]])
    found = rollout.rollouts(job(tail="batching", oversampling_ratio=2.0))
    quick, late = found.rounds
    assert (quick.time_s, quick.lengths.prompt.tolist(), quick.lengths.response.tolist()) == (5.0, [4], [5])
    assert quick.written_tokens == pytest.approx(5 + 5 + 5 + 5)  # the parts of 10, 20, 5 and 40 that 5 s write
    assert (late.time_s, late.lengths.prompt.tolist(), late.written_tokens) == (10.0, [3], 10.0)
    assert found.time_s == 7.5


def test_tail_batching_gathers_until_a_round_is_full(a_token_a_second):
    """Three prompts begun for two: one is put off a round, so two short rounds fill a long one of two."""
    rows = [(3, 10), (3, 11), (4, 20), (4, 21), (5, 30), (5, 31)]
    a_token_a_second([rows, rows])
    found = rollout.rollouts(job(tail="batching", num_prompts=2, oversampling_ratio=1.5))
    assert [r.time_s for r in found.rounds] == [20.0, 20.0, 30.0]
    assert found.rounds[0].lengths.response.tolist() == [10, 20]
    assert found.rounds[2].lengths.response.tolist() == [30, 30]
    alone = rollout.rollouts(job(tail="batching", num_prompts=3, group=2))
    assert len(alone.rounds) == 1
    assert alone.time_s == 31.0


def timeline(busy_s):
    table = np.zeros((len(busy_s), len(TIMELINE)))
    table[:, TIMELINE.index("busy_s")] = busy_s
    return table


@pytest.fixture
def ten_seconds(monkeypatch):
    """Each batch of two takes 10 s; engines are busy half of each second."""
    runs = []

    def run(job, begun, arrive_s=None, in_flight=0):
        runs.append((begun, arrive_s, in_flight))
        arrive_s = np.zeros(begun.prompt.size) if arrive_s is None else arrive_s
        ends = arrive_s + 10.0 if not in_flight else np.arange(begun.prompt.size) * 3.0
        edges = np.arange(0.0, ends.max() + 1.0)
        return SimpleNamespace(finish_s=ends, timeline_s=edges, timeline=timeline([1.0] * (edges.size - 1)))

    def whole(job, number=0):
        tokens = np.array([number, number])
        return Begun(input_tokens=tokens, output_tokens=tokens, prompt_tokens=tokens, prompt=np.array([0, 0])), None

    monkeypatch.setattr(pace, "run", run)
    monkeypatch.setattr(pace, "whole_batch", whole)
    return runs


def side_job(**given):
    capped = given.pop("capped", False)
    framework = SimpleNamespace(caps_batches_in_flight=capped)
    return job(framework=framework, group=2, replicas=2, **given)


def test_batches_that_come_every_period_share_the_engines(ten_seconds):
    latency, busy = pace._run(side_job(max_staleness=1), 4.0, 10.0)
    assert (latency, busy) == (10.0, 0.5)
    begun, arrive_s, _ = ten_seconds[0]
    assert arrive_s.tolist() == [0, 0, 4, 4, 8, 8, 12, 12, 16, 16]  # two beside each other, three that count
    assert begun.prompt.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert begun.output_tokens.tolist() == begun.prompt.tolist()
    pace._run(side_job(max_staleness=9), 4.0, 10.0)  # 10 s are never beside more than three others
    assert ten_seconds[1][1].size == 2 * (4 + 3)


def alone_of(ends, busy=8.0, machines=2):
    return SimpleNamespace(finish_s=np.array(ends), timeline=timeline([busy]), num_machines=machines)


def test_engines_that_finish_first_take_the_slower_of_both(ten_seconds):
    found = pace.side_by_side(side_job(updates_in_flight=False, max_staleness=1), 5.0, alone_of([3.0, 16.0]))
    assert found == OverlappedSteps(period_s=16.0, latency_s=16.0, busy_frac=0.25)
    found = pace.side_by_side(side_job(updates_in_flight=False, max_staleness=1), 20.0, alone_of([16.0], machines=1))
    assert found == OverlappedSteps(period_s=20.0, latency_s=16.0, busy_frac=0.4)
    assert ten_seconds == []


def test_updates_in_flight_hide_a_batch_behind_the_next(ten_seconds):
    """10 s <= 2 P - 4 from P = 7 on."""
    found = pace.side_by_side(side_job(max_staleness=1), 4.0, alone_of([10.0]))
    assert found == OverlappedSteps(period_s=7.0, latency_s=10.0, busy_frac=0.5)
    assert pace.side_by_side(side_job(max_staleness=1), 30.0, alone_of([10.0])).period_s == 30.0


def test_engines_that_are_shared_lengthen_the_period(ten_seconds, monkeypatch):
    """A batch takes 10 s, and 40 s over the period more for what is beside it: 10 + 40 / P <= 2 P - 4 from P = 9.19."""
    monkeypatch.setattr(pace, "_run", lambda job, period_s, alone_s: (alone_s + 40.0 / period_s, 7.0 / period_s))
    found = pace.side_by_side(side_job(max_staleness=1), 4.0, alone_of([10.0]))
    assert 9.18 <= found.period_s <= 9.19 * (1 + pace.CLOSE)
    assert found.latency_s == 10.0 + 40.0 / found.period_s
    assert found.busy_frac == 7.0 / found.period_s


def test_batches_in_flight_can_be_capped(ten_seconds):
    """Ends 3 s apart: two sequences every 6 s, however many are in flight; no longer than a batch alone."""
    found = pace.side_by_side(side_job(max_staleness=3, capped=True), 2.0, alone_of([10.0]))
    assert ten_seconds[0][2] == 6  # three batches of two
    assert ten_seconds[0][0].prompt.size == 10
    assert found.period_s == 6.0
    assert pace.side_by_side(side_job(max_staleness=3, capped=True), 1.0, alone_of([5.0])).period_s == 5.0


def test_an_engine_that_holds_no_sequence_is_no_pace(monkeypatch, ten_seconds):
    monkeypatch.setattr(pace, "run", lambda *a, **k: FULL)
    assert pace._full_period_s(side_job(max_staleness=1)) is FULL
    assert pace.side_by_side(side_job(max_staleness=1, capped=True), 1.0, alone_of([5.0])) is FULL
    with pytest.raises(ScenarioError, match="rollouts"):
        pace._run(side_job(max_staleness=1), 1.0, 5.0)


def test_the_search_halves_until_a_hundredth():
    """From 50.5 to 101 around 73: seven halvings leave 0.4, less than 0.73."""
    tried = []

    def latency_s(period_s):
        tried.append(period_s)
        return 0.0 if period_s >= 73.0 else 1e9

    found = least_period_s(latency_s, 1.0, 1, 100.0)
    assert 73.0 <= found <= 73.4
    assert len(tried) == 1 + 7 + 1
    assert least_period_s(lambda p: 0.0, 1.0, 1, 100.0, least_s=60.0) == 60.0


@dataclass(frozen=True)
class Engine:
    sampling_s: float = 1.0
    overlap_frac: float = 0.7
    block_tokens: int = 16
    has_prefix_caching: bool = True


@dataclass(frozen=True)
class Generation:
    engine: Engine
    layout: object


def deployed(devices, returns, by_ray):
    framework = SimpleNamespace(returns_logprobs=returns, logprob_s=0.25, runs_engines_by_ray=by_ray)
    generation = Generation(Engine(), SimpleNamespace(num_devices=devices))
    found = engine.deployed(SimpleNamespace(generation=generation, framework=framework)).engine
    return found.sampling_s, found.overlap_frac


def test_what_a_framework_makes_of_its_engine():
    assert deployed(1, False, False) == (1.0, 0.7)
    assert deployed(1, True, True) == (1.25, 0.7)
    assert deployed(2, False, True) == (1.0, 0.0)
    assert deployed(2, True, False) == (1.25, 0.7)


def shared(prompts, tokens, order, group=2, caching=True):
    generation = Generation(Engine(has_prefix_caching=caching), None)
    none = np.zeros(len(prompts), dtype=np.int64)
    begun = Begun(input_tokens=none, output_tokens=none, prompt=np.array(prompts), prompt_tokens=np.array(tokens))
    start, ids, size = engine._shared_prompts(job(generation=generation, group=group), begun, np.array(order))
    return start.tolist(), ids.tolist(), size


def test_responses_share_the_whole_blocks_of_their_prompt():
    """Prompts of 40 and 20 tokens hold two whole blocks of 16 and one; ids go by first use."""
    prompts, tokens = [0, 0, 1, 1], [40, 40, 20, 20]
    assert shared(prompts, tokens, [0, 1, 2, 3]) == ([0, 2, 4, 5, 6], [0, 1, 0, 1, 2, 2], 16)
    assert shared(prompts, tokens, [2, 0, 3, 1]) == ([0, 1, 3, 4, 6], [0, 1, 2, 0, 1, 2], 16)
    assert shared(prompts, tokens, [0, 1, 2, 3], group=1) == ([], [], 0)
    assert shared(prompts, tokens, [0, 1, 2, 3], caching=False) == ([], [], 0)
    assert shared(prompts, [15] * 4, [0, 1, 2, 3]) == ([], [], 0)


def test_sequences_are_dealt_and_put_back_in_order(monkeypatch):
    seen = {}

    def simulate(service, requests, seed, concurrency):
        seen.update(router=service.router, tokens=requests.output_tokens.tolist(), concurrency=concurrency)
        ends = requests.output_tokens.astype(float)
        return Served(finish_s=ends, first_token_s=ends, machine=ends, admitted_s=ends, preemptions=ends)

    @dataclass(frozen=True)
    class Served:
        finish_s: object
        first_token_s: object
        machine: object
        admitted_s: object
        preemptions: object

    monkeypatch.setattr(engine, "simulate", simulate)
    monkeypatch.setattr(engine, "deployed", lambda job: None)
    tokens = np.array([10, 20, 30, 40, 50])
    begun = Begun(input_tokens=tokens, output_tokens=tokens, prompt=np.arange(5), prompt_tokens=tokens)
    given = job(replicas=2, generation=Generation(Engine(), None))
    assert engine.run(given, begun).finish_s.tolist() == [10, 20, 30, 40, 50]
    assert seen == {"router": "round-robin", "tokens": [10, 40, 20, 50, 30], "concurrency": 0}
    engine.run(given, begun, in_flight=3)
    assert seen == {"router": "least-loaded", "tokens": [10, 20, 30, 40, 50], "concurrency": 3}
    engine.run(given, begun, arrive_s=np.arange(5.0))
    assert seen["router"] == "least-loaded"


def test_a_group_of_tail_batching_is_done_with_its_last_response(a_token_a_second):
    """Two responses of three each: 10 and 30 s, 20 and 21 s; the second group ends after 21 s."""
    rows = [(3, 10), (3, 30), (3, 90), (4, 20), (4, 21), (4, 80)]
    a_token_a_second([rows])
    quick = rollout.rollouts(job(tail="batching", group=2, oversampling_ratio=1.5)).rounds[0]
    assert (quick.time_s, quick.lengths.response.tolist()) == (21.0, [20, 21])


def test_partial_rollouts_draw_for_groups_that_teach_nothing(a_token_a_second, monkeypatch):
    """Half of the groups teach: two are waited for, of three that are begun, and the first of them is trained on."""
    asked = a_token_a_second([[(3, 10), (3, 30), (3, 20)]])
    monkeypatch.setattr(rollout, "ROUNDS", 1)
    (found,) = rollout.rollouts(job(tail="partial", kept_frac=0.5, oversampling_ratio=1.5)).rounds
    assert asked == [(0, 3, 1)]
    assert (found.time_s, found.lengths.response.tolist()) == (20.0, [10])


def test_the_fullest_round_and_means_of_the_others():
    rounds = [
        SimpleNamespace(
            time_s=t, tail_s=t / 2, busy_s=np.array([t, 0.0]), written_tokens=t, energy_j=3 * t, preemptions=n
        )
        for t, n in ((2.0, 5), (4.0, 1))
    ]
    found = rollout.Rollouts(rounds=tuple(rounds), simulated=None)
    assert (found.time_s, found.tail_s, found.busy_s) == (3.0, 1.5, 1.5)
    assert (found.written_tokens, found.energy_j, found.preemptions) == (3.0, 9.0, 5)


@pytest.mark.parametrize(("is_colocated", "devices"), [(True, 8), (False, 8 + 3 * 4)])
def test_devices_of_both_pools(is_colocated, devices):
    unsaid = dict.fromkeys(("framework", "layout", "prompt", "response"))
    pools = RlJob(
        **unsaid,
        training=SimpleNamespace(cluster=SimpleNamespace(num_devices=8)),
        generation=SimpleNamespace(layout=SimpleNamespace(num_devices=4)),
        replicas=3,
        num_prompts=5,
        group=2,
        is_colocated=is_colocated,
    )
    assert (pools.num_devices, pools.generation_devices, pools.num_samples) == (devices, 12, 10)
