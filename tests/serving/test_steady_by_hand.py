"""Pieces of the closed form of a replica, each on a few numbers: waits, mixes of steps, rounds, rates."""

from dataclasses import dataclass, replace
from math import exp, inf, pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.memory import Infeasible
from orrery.serving import online, steady
from orrery.serving.mix import Mix, _ceil_area, _cut_normal, _queue, _settle, _steps_of, apart, mixed, waves_of
from orrery.serving.online import Points, _first_round, _spread_frac, at_rate, highest_rate, open_loop, sweep
from orrery.serving.steady import (
    _at_chunks,
    _away_s,
    _Costs,
    _gathered,
    _idle_frac,
    _mean_s,
    _nodes,
    _own_s,
    _passes_s,
    _preempted,
    _unseen_s,
    _with_me_s,
    batch_limit,
    looks_every,
)


def one(*values):
    return np.array([float(v) for v in values])


def test_whole_steps_of_prompts_around_a_length():
    """The area under ceil: 0.5, 1, 1 + 2 / 2, 3; lengths of 2 steps, a quarter around: half take 2, half
    take 3; from 1.125 to 1.875 all take 2."""
    assert _ceil_area(one(0.5, 1.0, 1.5, 2.0)).tolist() == [0.5, 1.0, 2.0, 3.0]
    assert _steps_of(one(2.0, 1.5, 0.4), 0.25).tolist() == pytest.approx([2.5, 2.0, 1.0])
    assert _steps_of(one(2.0, 2.1), 0.0).tolist() == [2.0, 3.0]


def test_a_normal_law_cut_off_at_zero():
    """Around 0 its mean is sqrt(2 / pi); far above zero nothing is cut off; at -1 and 1 Mills' ratio is 0.65568."""
    assert _cut_normal(one(0.0))[0] == pytest.approx(sqrt(2 / pi), rel=0.02)
    assert _cut_normal(one(8.0))[0] == pytest.approx(8.0, rel=1e-6)
    assert _cut_normal(one(-1.0))[0] == pytest.approx(1 / 0.65568 - 1, rel=0.04)
    density = exp(-0.5) / sqrt(2 * pi)
    assert _cut_normal(one(1.0))[0] == pytest.approx(1 + density / (1 - 0.158655), rel=0.01)


def test_a_queue_that_flow_fills_and_one_that_chance_fills():
    """Prompts of 400, 9 decodes, budget 1000, life 10: 2.5 x 10 / (1 + 9/400) = 24.45 slots keep it busy."""
    load, level, excess = _queue(one(1000.0), 400.0, 9.0, 1000.0, one(10.0))
    fits = 2.5 * 10 / (1 + 9 / 400)
    assert (load[0], level[0]) == (1.0, pytest.approx(999 - fits))
    assert excess[0] == pytest.approx(0.0, abs=1e-6)
    load, level, excess = _queue(one(4.0), 400.0, 9.0, 1000.0, one(10.0))
    # 0.4 prompts a step of 400 tokens beside 3.6 decodes
    assert (load[0], level[0]) == (pytest.approx(160 / 996.4), 0.0)
    assert 0.0 <= excess[0] < 0.1
    full, _, chance = _queue(one(fits + 1.0), 400.0, 9.0, 1000.0, one(10.0))
    spread = sqrt(fits / (2 * (1 + 9 / 400)))
    assert (full[0], chance[0]) == (1.0, pytest.approx(spread * sqrt(2 / pi), rel=0.02))


def test_room_that_decodes_leave():
    """8 slots in a life of 16 decode 7 x 8 / 16 = 3.5 a step beside prompts of 100 in 1000: a tenth of a step each."""
    found = _settle(one(8.0), 100.0, 7.0, 1000.0, one(16.0), 0.1)
    assert found.size[0] == pytest.approx(100 / 996.5)
    assert (found.own_steps[0], found.alone[0]) == (1.0, pytest.approx(1.0))
    long = _settle(one(1.0), 2500.0, 7.0, 1000.0, one(1000.0), 0.0)
    assert long.alone[0] == 3.0  # 2.5 steps, in whole ones
    load = long.load[0]
    assert long.own_steps[0] == pytest.approx((1 - load) * 3 + load * (long.size[0] + 0.5))


def test_prompts_apart_come_at_every_look():
    """16 slots of 8 decodes: two prompts a step; looked for every fourth step, eight come at once."""
    now = apart(one(16.0), 100.0, 8.0, 1000.0, 0.0)
    assert (now.prompts[0], now.decoding[0], now.room_tokens[0], now.dense[0]) == (2.0, 16.0, 1000.0, 1.0)
    late = apart(one(16.0), 100.0, 8.0, 1000.0, 0.0, interval=4.0)
    assert (late.shares * late.chunks).sum() == pytest.approx(200.0)
    assert late.shares.sum() == pytest.approx((1 - 0.5**16) / 4)
    away = apart(one(16.0), 100.0, 8.0, 1000.0, 8.0)
    assert (away.prompts[0], away.decoding[0]) == (1.0, 8.0)
    short = apart(one(4.0), 100.0, 0.0, 1000.0, 0.0)
    assert short.prompts[0] == 4.0  # a life is a step at least


def test_starts_move_apart_by_the_spread_of_lengths():
    assert waves_of(one(0.3), 0.1, inf).dense[0] == 1.0
    # one later round: between starts of width 0 and 0.2, 2 (sqrt(1.5) - sqrt(0.5)) x 0.2 / 0.04
    assert waves_of(one(0.0), 0.1, 2.0).dense[0] == pytest.approx(10 * (sqrt(1.5) - sqrt(0.5)))
    # gathered by a fifth they stay as wide as a step of 0.25
    assert waves_of(one(0.0), 0.1, 1e6, 0.2, 0.25).dense[0] == pytest.approx(4.0, rel=1e-3)
    # 0.15 is where a tenth is taken from widths that grow by 0.2 in squares
    assert waves_of(one(0.0), 0.1, 1e6, 0.1).dense[0] == pytest.approx(1 / 0.15, rel=1e-3)


def test_a_mix_of_a_few_slots_away_for_a_while():
    """Four slots, 39 decodes, a step of prompt, 10 steps away: 4 / 50 prompts a step."""
    found = mixed(one(4.0), 100.0, 39.0, 1e6, 10.0)
    assert found.prompts[0] == pytest.approx(0.08, rel=0.01)
    assert found.decoding[0] == pytest.approx(39 * found.prompts[0])
    assert found.room_tokens[0] == pytest.approx(1e6, rel=1e-3)
    assert (found.own_steps[0], found.wait_steps[0], found.dense[0]) == (1.0, pytest.approx(0.0, abs=0.01), 1.0)
    assert (found.shares * found.chunks).sum() == pytest.approx(100 * found.prompts[0])


def mix(**given):
    usual = {"decoding": 4.0, "prompts": 0.5, "load": 0.4, "waiting": 0.0, "own_steps": 1.0, "wait_steps": 2.0}
    usual |= {"room_tokens": 1000.0, "dense": 1.0} | {k: v for k, v in given.items() if k not in ("chunks", "shares")}
    values = {k: one(v) for k, v in usual.items()}
    chunks, shares = given.get("chunks", (100.0, 300.0)), given.get("shares", (0.3, 0.1))
    return Mix(**values, chunks=np.array(chunks).reshape(2, 1), shares=np.array(shares).reshape(2, 1))


def costs(**given):
    usual = {"decode_s": one(2.0), "chunk_s": np.array([[3.0], [5.0]]), "together_s": np.array([[0.25], [0.5]])}
    usual |= {"full_s": one(10.0), "full_prompts": one(4.0), "node_tokens": np.array([[100.0], [300.0], [1000.0]])}
    usual |= {"node_s": np.array([[3.0], [5.0], [12.0]]), "node_together_s": np.array([[0.25], [0.5], [1.2]])}
    return _Costs(**(usual | given))


def test_chunks_lie_on_the_lines_between_those_that_were_costed():
    """200 is half way from 3 to 5 s, 650 half way on to 12; 50 on the first line below; 2000 are two full steps."""
    found = _at_chunks(costs(), mix(chunks=(200.0, 650.0)))
    assert found.chunk_s.ravel().tolist() == [4.0, 8.5]
    assert found.together_s.ravel().tolist() == pytest.approx([0.375, 0.85])
    found = _at_chunks(costs(), mix(chunks=(50.0, 2000.0)))
    assert found.chunk_s.ravel().tolist() == [2.5, 24.0]
    assert found.together_s.ravel().tolist() == pytest.approx([0.1875, 2.4])
    assert _nodes(mix(chunks=(50.0, 2000.0)), one(8.0), one(100.0)).ravel().tolist() == [50.0, 1000.0, 800.0]


def test_steps_as_a_prompt_token_sees_them():
    """30 tokens a step in chunks of 3 s, 30 in chunks of 5 s."""
    assert _with_me_s(mix(), costs())[0] == pytest.approx(4.0)
    assert _with_me_s(mix(), costs(), 0.5)[0] == pytest.approx(2.0)
    assert _with_me_s(mix(shares=(0.3, 0.0)), costs())[0] == pytest.approx(3.0)


def test_own_steps_and_those_of_prompts_ahead():
    """A tenth of a step: the mean step with prompts, 4 s, two large ones of 5 s before it."""
    own_s, behind_s = _own_s(True, mix(), costs(), one(100.0))
    assert (own_s[0], behind_s[0]) == (pytest.approx(2.0 + 4.0 - 2.0), 10.0)
    # 2.5 steps and a fifth: 3 own steps of decodes, and so much of what a full chunk adds
    own_s, _ = _own_s(True, mix(own_steps=3.0), costs(), one(2500.0))
    assert own_s[0] == pytest.approx(3 * 2.0 + 2.7 * 3.0)
    # prompts alone: those of 300 and less end with their step; chunks of 2000 end after 1 and 2 steps
    own_s, behind_s = _own_s(False, mix(), costs(), one(100.0))
    assert (own_s[0], behind_s[0]) == (pytest.approx(4.0), 0.0)
    own_s, _ = _own_s(False, mix(chunks=(100.0, 2000.0)), costs(), one(100.0))
    assert own_s[0] == pytest.approx((30 * 3.0 + 200 * 5.0 * 0.75) / 230)


def deployed(dp=1, pp=1, ep=1, **engine):
    usual = {"has_mixed_steps": True, "reserves_output": False, "block_tokens": 16, "has_cuda_graphs": True}
    layout = SimpleNamespace(dp=dp, pp=pp, ep=ep, shares_experts=dp > 1)
    return SimpleNamespace(engine=SimpleNamespace(**(usual | engine)), layout=layout)


def test_the_mean_step():
    """2 s, and 1 s more in three of ten, 3 s more in one of ten; where prompts run apart their whole time comes on top.
    Two ranks that share experts: in 0.36 neither has prompts, in 0.81 none a large chunk."""
    assert _mean_s(deployed(), mix(), costs())[0] == pytest.approx(2.0 + 0.3 + 0.3)
    assert _mean_s(deployed(has_mixed_steps=False), mix(), costs())[0] == pytest.approx(2.0 + 0.9 + 0.5)
    shared = 0.3 * 0.25 + 0.1 * 0.5 + 0.45 * 0.75 + 0.19 * 2.5
    assert _mean_s(deployed(dp=2), mix(), costs())[0] == pytest.approx(2.0 + shared)


def test_what_comes_back_at_once():
    """A front end of 9 s holds 4.5 steps of 2 s, less one and a half; of full steps of 3 s three and a half."""
    assert _gathered(True, 9.0, costs(), one(8.0))[0] == pytest.approx(4.5 - 1.0 - 0.5)
    assert _gathered(True, 9.0, costs(full_s=one(3.0)), one(8.0))[0] == pytest.approx(4.5 - 3.0 - 0.5)
    assert _gathered(True, 0.1, costs(), one(8.0))[0] == 0.0
    # apart: two full steps hold 8 slots, 20 s; 9 x 20 / 29 s are 3.1 decodes
    assert _gathered(False, 9.0, costs(), one(8.0))[0] == pytest.approx(180 / 29 / 2 - 0.5)
    assert _gathered(False, 9.0, costs(), one(2.0))[0] == pytest.approx(90 / 19 / 2 - 0.5)


def test_all_others_at_the_front_end():
    """Three slots of half a prompt a step live 6 steps of 2 s; a front end of 3 s is a quarter of that."""
    assert _idle_frac(3.0, one(2.0), mix(), one(3.0))[0] == pytest.approx(0.0625)
    assert _idle_frac(3.0, one(2.0), mix(), one(1.0))[0] == 1.0
    assert _idle_frac(99.0, one(2.0), mix(), one(3.0))[0] == 1.0


def test_the_rest_of_a_step_beside_the_front_end():
    """Steps with prompts, 0.4 of all, take 3.5 s; shorter than a front end of 4 s, a step is under way for its share
    of the time: 1.4 of 2.6 s."""
    found = _away_s(4.0, True, one(2.0), costs(), mix(), one(1e6))
    passed = 1.4 / 2.6
    assert found[0] == pytest.approx(4.0 + (passed * 3.5 + (1 - passed) * 2.0) / 2)
    # a front end of 2 s is one decode: 0.4 come at once to a step of 3.5 s, 0.6 wait for half a decode
    found = _away_s(2.0, True, one(2.0), costs(), mix(), one(1e6))
    before = 2.0 * (0.6 / 0.4 - 1.0 * 0.6 / 0.4)
    assert found[0] == pytest.approx(0.4 * (before + 3.5) + 0.6 * 3.0)
    crowded = _away_s(2.0, True, one(2.0), costs(), mix(dense=2.0), one(1e6))
    assert crowded[0] == pytest.approx(0.8 * (2.0 * (0.25 - 0.25) + 3.5) + 0.2 * 3.0)
    assert _away_s(2.0, False, one(2.0), costs(), mix(dense=2.0), one(1e6))[0] == pytest.approx(found[0])
    assert _away_s(4.0, True, one(2.0), costs(), mix(), one(1.0))[0] == 4.0


def test_until_the_scheduler_looks_again():
    """It looks every second decode of 2 s: an answer ends with none or one to come. A front end of 1 s is in time for
    the second; after the first, prompts of a share 0.8 of looks take 2 (2.6 - 2) / 0.8 = 1.5 s, and it is seen then;
    otherwise it comes after two more steps: 4 s."""
    found = _unseen_s(1.0, one(2.6), one(2.0), mix(), one(1e6), 2.0)
    missed = max(4.0, 1.0 + 2.6)
    assert found[0] == pytest.approx((2.0 + 0.8 * 1.5 + 0.2 * missed) / 2)
    # 1.6 s are too late for these prompts: the next look is two steps later
    late = _unseen_s(1.6, one(2.6), one(2.0), mix(), one(1e6), 2.0)
    assert late[0] == pytest.approx((2.0 + 0.8 * max(5.5, 4.2) + 0.2 * 4.2) / 2)
    assert _unseen_s(99.0, one(2.6), one(2.0), mix(), one(1.0), 2.0)[0] == 99.0


def test_limits_of_a_batch():
    """100 tokens in, 60 out: half of these at a time and half a block are 138; half of a request stays free."""
    memory = SimpleNamespace(max_num_seqs=50, sequences=lambda tokens: 13_800.0 / tokens)
    assert batch_limit(deployed(), memory, 100.0, 60.0) == 50.0
    memory.max_num_seqs = 500
    assert batch_limit(deployed(), memory, 100.0, 60.0) == pytest.approx(99.5)
    assert batch_limit(deployed(reserves_output=True), memory, 100.0, 60.0) == pytest.approx(13_800 / 168 - 0.5)
    assert batch_limit(deployed(), memory, 1e6, 60.0) == 1.0


def test_prompts_that_a_full_cache_throws_out():
    """60 decodes beside prompts of 100: six of ten where somebody waits; in part where less than one does."""
    memory = SimpleNamespace(max_num_seqs=50)
    found = _preempted(deployed(), memory, 40.0, 100.0, 60.0, one(-3.0, 0.5, 9.0))
    assert found.tolist() == pytest.approx([0.0, 0.3, 0.6])
    assert _preempted(deployed(), memory, 40.0, 30.0, 60.0, one(9.0)).tolist() == [1.0]
    assert _preempted(deployed(), memory, 50.0, 100.0, 60.0, one(9.0)).tolist() == [0.0]
    assert _preempted(deployed(reserves_output=True), memory, 40.0, 100.0, 60.0, one(9.0)).tolist() == [0.0]


def test_looks_for_new_requests(monkeypatch):
    monkeypatch.setattr(steady, "recv_interval", lambda deployment: 8)
    assert looks_every(deployed(), 100.0) == 1.0
    assert looks_every(deployed(has_mixed_steps=False), 100.0) == 8.0
    assert looks_every(deployed(has_mixed_steps=False), 3.0) == 3.0
    assert looks_every(deployed(has_mixed_steps=False), 0.0) == 1.0


def test_a_pipeline_waits_for_its_slowest_stage():
    ticks = SimpleNamespace(time_s=one(10.0, 10.0), stage_s=one(2.0, 6.0))
    assert _passes_s(deployed(), ticks).tolist() == [10.0, 10.0]
    assert _passes_s(deployed(pp=2), ticks).tolist() == [10.0, 12.0]


@dataclass(frozen=True)
class State:
    """What a round sees: eight slots of ten requests, full steps of 4 prompts in 10 s, decodes of 2 s."""

    concurrency: object = 10.0
    slots: object = 8.0
    full_prompts: object = 4.0
    full_s: object = 10.0
    decode_s: object = 2.0
    tpot_s: object = 3.0
    requests_per_s: object = 0.5
    away_s: object = 1.0
    queue_s: object = 4.0
    behind_s: object = 5.0
    prefill_s: object = 6.0


def test_the_first_round():
    """Two full steps: prompts end after 10 and 20 s; two wait for a slot, 4 / (2 x 10 x 0.5) s on average. Half a step
    more is behind each prompt: of ten decodes one in twenty takes 8 s more."""
    ttft_s, tpot_s = _first_round(State(), 10.0, True)
    assert (ttft_s, tpot_s) == (pytest.approx(15.4), pytest.approx(2.0 + 0.05 * 8.0))
    assert _first_round(State(), 10.0, False)[1] == pytest.approx(2.0 + 0.05 * 10.0)
    assert _first_round(State(), 0.0, True) == (pytest.approx(15.4), 3.0)
    # 41 full steps, 20 behind on average; of ten decodes all but 100 / 80 are beside prompts
    many = State(concurrency=164.0, slots=164.0)
    assert _first_round(many, 10.0, True)[1] == pytest.approx(2.0 + (10 - 1.25) / 10 * 8.0)
    assert _first_round(State(concurrency=2.0, slots=2.0), 10.0, True) == (10.0, 2.0)


def test_how_far_lengths_lie_apart():
    """Whole lengths around 100 with deviation 10: sqrt(3) x 0.1 evenly, and half a token."""
    assert _spread_frac(100.0, 10.0) == pytest.approx(sqrt(0.03 + 0.005**2))
    assert _spread_frac(100.0, 0.0) == pytest.approx(sqrt(0.01 + 0.005**2))
    assert _spread_frac(1.0, 0.0) == pytest.approx(sqrt(0.01 + 0.25))
    assert _spread_frac(1.0, 10.0) == 1.0


def test_a_closed_loop_is_its_first_round_and_the_others(monkeypatch):
    """20 requests on two replicas, 4 in flight: two at each, of ten: a fifth starts at once."""
    asked = []

    def settled(deployment, memory, inputs, outputs, each, rounds=inf, spread=0.1):
        asked.append((each.tolist(), np.asarray(rounds).tolist()))
        return State()

    monkeypatch.setattr(online, "steady", settled)
    monkeypatch.setattr(online, "_first_round", lambda state, steps, mixed: (15.0, 2.0))
    engine = SimpleNamespace(has_mixed_steps=True, entry_s=lambda tokens: 0.5)
    given = SimpleNamespace(layout=SimpleNamespace(dp=2), engine=engine)
    found = sweep(given, None, 100.0, 11.0, one(4.0), 20.0)
    assert asked[0] == ([2.0], [5.0])
    assert found.ttft_s[0] == pytest.approx(0.2 * 15.5 + 0.8 * 16.0)
    assert found.tpot_s[0] == pytest.approx(0.2 * 2.0 + 0.8 * 3.0)
    assert found.requests_per_s[0] == pytest.approx(4.0 / (15.9 + 28.0))
    assert found.output_tokens_per_s[0] == pytest.approx(11 * 4.0 / 43.9)
    sweep(given, None, 100.0, 11.0, one(1.0))
    assert asked[1] == ([1.0], [10.0])  # ten rounds where nobody says
    monkeypatch.setattr(online, "steady", lambda d, m, i, o, each: replace(State(), requests_per_s=each))
    opened = open_loop(given, None, 100.0, 11.0, one(6.0))
    assert (opened.requests_per_s[0], opened.output_tokens_per_s[0]) == (6.0, 66.0)
    assert (opened.ttft_s, opened.tpot_s) == (16.0, 3.0)


@pytest.fixture
def loops(monkeypatch):
    """The rate rises with the root of what is in flight, 8/s at 64; a request takes 3 s and 10 more tokens 1 s."""

    def points(deployment, memory, inputs, outputs, concurrencies):
        rate = np.sqrt(concurrencies)
        each = np.ones(concurrencies.size)
        return Points(
            concurrency=concurrencies,
            ttft_s=3 * each,
            tpot_s=0.1 * each,
            requests_per_s=rate,
            output_tokens_per_s=rate * outputs,
            state=None,
        )

    monkeypatch.setattr(online, "open_loop", points)
    monkeypatch.setattr(online, "batch_limit", lambda *_: 32.0)
    named = SimpleNamespace(name="x")
    return SimpleNamespace(layout=SimpleNamespace(dp=2), model=named, cluster=SimpleNamespace(device=named))


def test_arrivals_at_a_rate(loops):
    """4/s live 4 s: 16 by Little's law. Beyond 8/s the queue grows; a run of 100 ends with a backlog."""
    assert highest_rate(loops, None, 1.0, 11.0) == pytest.approx(8.0)
    found = at_rate(loops, None, 1.0, 11.0, 4.0)
    assert (found.concurrency, found.highest_requests_per_s) == (16.0, pytest.approx(8.0))
    assert (found.requests_per_s.tolist(), found.output_tokens_per_s.tolist()) == ([4.0], [44.0])
    assert at_rate(loops, None, 1.0, 11.0, 0.5).concurrency == 2.0
    over = at_rate(loops, None, 1.0, 11.0, 8.1)
    assert isinstance(over, Infeasible)
    assert (over.need, over.have) == (8.1, pytest.approx(8.0))
    assert "Run 2 replicas" in over.smallest_change
    ended = at_rate(loops, None, 1.0, 11.0, 16.0, 100.0)
    assert (ended.concurrency[0], ended.ttft_s[0]) == (64.0, pytest.approx(3.0 + 50 * (1 / 8 - 1 / 16)))
    assert ended.requests_per_s[0] == pytest.approx(8.0)
