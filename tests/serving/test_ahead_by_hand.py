"""Steps that are planned ahead, one function at a time: when they are planned, what they cost, how they are booked."""

from unittest.mock import patch

import numpy as np
import pytest
from small_state import decode, lane_of, put, state

from orrery.base.compiled import source_of
from orrery.execution.surface import _kernel as surface
from orrery.serving.simulation.ahead import _kernel as ahead
from orrery.serving.simulation.tables import _kernel as k
from orrery.serving.simulation.timeline._kernel import gap_bin

ROWS = 64


def lane(**given):
    """Three answers of a lane at its tenth step; a device draws 100 W from idle to its limit, in proportion to work."""
    retained = np.zeros((1, k.GAP_S + 1))
    retained[0, [k.KEPT, k.SPAN_W, k.CONCAVE_POWER]] = 0.5, 100.0, 0.5
    made = {"ahead": np.zeros((1, 5, ROWS + 1)), "ahead_cost": np.zeros((ROWS, surface.CHANNELS)), "surfaces": None}
    w = state(lanes=1, bins=16, retained=retained, **(made | given))
    decode(w, 0, 0, 1, 2, context=100)
    lane_of(w, 0, steps=10, max_ahead=16, next_end=40)
    w.step[0, k.N_DECODES] = 3.0
    return w


def planned(*ends_s):
    """Steps that end then, the first of them in flight since 0.5 s; one had joined whose prompt ended at 0.25 s."""
    w = lane()
    w.ahead[0, k.AHEAD_END_S, : len(ends_s)] = ends_s
    w.ahead[0, k.AHEAD_S, 1 : len(ends_s)] = np.diff(ends_s)
    lane_of(w, 0, ahead=len(ends_s) - 1, num_fresh=1)
    w.seats[0, k.SEAT_FRESH, 0], w.when[2, k.LAST], w.rates[0, k.DECODED_S] = 2, 0.25, 0.5
    w.units[0, k.BEGAN] = 0.5
    return w


def gaps_of(w):
    return {int(bin): float(w.gaps[bin]) for bin in np.flatnonzero(w.gaps)}


# -- planning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ({}, 16),
        ({"next_end": 20}, 9),
        ({"next_end": 14}, 3),
        ({"next_end": 13}, 0),
        ({"num_prompts": 1}, 0),
        ({"reserved": 1}, 0),
        ({"num_prompts": 1, "reserved": 1}, 0),
        ({"num_waiting": 1}, 0),
        ({"num_waiting": 1, "max_seqs": 3}, 16),
        ({"max_seqs": 3}, 16),
    ],
)
def test_steps_are_planned_up_to_the_next_answer_s_end_where_nobody_may_join(changed, steps):
    w = lane()
    lane_of(w, 0, ended=5, **changed)
    with patch.object(ahead, "_price_ahead", lambda w, unit, lane, steps: 100.0 + steps):
        assert source_of(ahead.plan_ahead)(w, 0, 7.0) == (100.0 + steps if steps else 7.0)
    assert w.lanes[0, [k.AHEAD, k.ENDED]].tolist() == ([steps, 0] if steps else [0, 5])
    assert w.ahead[0, k.AHEAD_END_S, 0] == (7.0 if steps else 0.0)


def test_nothing_is_planned_on_a_machine_at_other_clocks():
    assert ahead.plan_ahead(lane(clocks=np.array([0.5])), 0, 7.0) == 7.0


@pytest.mark.parametrize(("free", "is_planned"), [(20, True), (19, False)])
def test_nothing_is_planned_beyond_the_blocks_that_are_free(free, is_planned):
    """16 steps from the tenth: 10 + 16 - 0 + 1 tokens more than the 10 that joined at step 0. Requests 0 and 1 hold two
    blocks of 16, 27 + 10 = 37 tokens need three; request 2 needs its next block at step 28, which is later."""
    w = lane()
    for i in range(3):
        put(w, i, computed=10, blocks=2, input=10, output=90)
    w.seats[0, k.SEAT_BLOCK_DUE, :3] = 23, 27, 28
    w.memory.free[0] = free
    with patch.object(ahead, "_price_ahead", lambda *_: 99.0):
        assert source_of(ahead.plan_ahead)(w, 0, 7.0) == (99.0 if is_planned else 7.0)


def test_an_answer_needs_no_more_blocks_than_its_length():
    """36 tokens in all are three blocks of 16, after however many steps; 20 + 13 - 5 + 1 = 29 are two."""
    w = lane()
    put(w, 0, computed=20, joined=5, input=20, output=16)
    assert [ahead._blocks_at(w, 0, steps) for steps in (0, 13, 16, 17, 90)] == [1, 2, 2, 3, 3]


def test_steps_are_priced_one_by_one():
    """The device takes 0.75 (bytes from elsewhere, beside 0.5), 1.25 and 2 s. The host's 0.25 + 3 x 0.25 = 1 s overlap
    by half, its launches take 0.25 s, sampling 3 x 0.125 s: device + 0.875, and twice as long on a slow machine. Only
    the first step is shorter on the device than 1.25 s on the host."""
    w = lane(slowness=np.array([2.0]), num_variants=7)
    lane_of(w, 0, deployment=1)
    w.retained = np.vstack([np.full_like(w.retained, 9.0), w.retained])
    w.retained[1, k.FETCH_S] = 0.75
    w.rates[0, [k.HOST_STEP_S, k.HOST_PER_SEQUENCE_S, k.HOST_OVERLAP_FRAC]] = 0.25, 0.25, 0.5
    w.rates[0, [k.HOST_LAUNCH_S, k.SAMPLING_S]] = 0.25, 0.125
    asked = []

    def costs(surfaces, which, out, *given):
        asked.append((which, *given))
        out[:3, surface.TIME] = 0.5, 1.25, 2.0
        out[:3, surface.MATRIX_WORK], out[:3, surface.MEMORY_WORK] = (1, 2, 3), (4, 5, 6)

    w.ahead[0, k.AHEAD_END_S, 0] = 1.0
    with patch.object(ahead, "decode_costs", costs):
        assert source_of(ahead._price_ahead)(w, 0, 0, 3) == 14.25
    assert asked == [(7, 3.0, 106.0, 0.5, 3)]
    assert w.ahead[0, k.AHEAD_S, 1:4].tolist() == [3.25, 4.25, 5.75]
    assert w.ahead[0, k.AHEAD_END_S, :4].tolist() == [1.0, 4.25, 8.5, 14.25]
    assert w.ahead[0, k.AHEAD_HOST_BOUND_S, 1:4].tolist() == [1.625, 0.0, 0.0]
    assert w.ahead[0, k.AHEAD_MATRIX_S, 1:4].tolist() == [1, 2, 3]
    assert w.ahead[0, k.AHEAD_MEMORY_S, 1:4].tolist() == [4, 5, 6]


# -- settling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now_s", "with_now", "ended", "longest"),
    [
        (0.5, True, 0, 16 - 8),
        (2.0, False, 1, 16 + 1 - 8),
        (2.0, True, 2, 16 + 2 - 8),
        (4.5, False, 3, 16 + 3 - 8),
        (6.0, True, 4, 16 + 4),
    ],
)
def test_a_plan_is_as_long_as_the_last_ones_held(now_s, with_now, ended, longest):
    """Four steps were planned beyond that in flight. One that held to its end may be four longer; the next moment is
    the end of the step in flight."""
    w = planned(1.0, 2.0, 3.5, 5.0, 6.0)
    ahead.settle(w, 0, now_s, with_now)
    assert w.lanes[0, [k.AHEAD, k.ENDED, k.STEPS, k.MAX_AHEAD]].tolist() == [0, ended, 10 + ended, longest]
    assert w.moments[0] == [1.0, 2.0, 3.5, 5.0, 6.0][ended]
    assert w.units[0, k.BEGAN] == [0.5, 1.0, 2.0, 3.5, 5.0][ended]


@pytest.mark.parametrize(("before", "now_s", "after"), [(63, 9.0, ROWS), (9, 0.1, 6), (12, 0.1, 6), (13, 0.1, 7)])
def test_a_plan_has_a_least_and_a_greatest_length(before, now_s, after):
    w = planned(1.0, 2.0, 3.0, 4.0)
    lane_of(w, 0, max_ahead=before)
    ahead.settle_all(w, now_s)
    assert w.lanes[0, k.MAX_AHEAD] == after


def test_nothing_is_settled_where_nothing_is_planned():
    w = planned(1.0, 2.0)
    lane_of(w, 0, ahead=0)
    ahead.settle(w, 0, 9.0, True)
    assert (w.lanes[0, k.STEPS], w.lanes[0, k.MAX_AHEAD], w.moments[0]) == (10, 16, np.inf)


def test_steps_are_booked():
    """Two steps of three answers end at 1 and 2 s; half of a token's bytes are read."""
    w = planned(1.0, 2.0, 3.5, 5.0, 6.0)
    w.rates[0, k.LOAD_TOKENS] = 90.0
    ahead.settle(w, 0, 3.5, False)
    assert w.lanes[0, [k.STEPS, k.CONTEXT, k.NUM_FRESH]].tolist() == [12, 106, 0]
    assert w.rates[0, [k.LOAD_TOKENS, k.DECODED_S]].tolist() == [84.0, 2.0]
    assert w.tally[0, [k.T_STEPS, k.T_ANSWERED]].tolist() == [2, 6]
    assert w.step[0, k.N_CONTEXT] == (106 + 3) * 0.5
    assert w.totals[[k.TOTAL_STEPS, k.BUSY]].tolist() == [2.0, 1.5]
    assert w.rates[0, k.BUSY_S] == 1.5
    assert w.timeline[:4, k.B_STEPS].tolist() == [0, 1, 1, 0]
    assert w.timeline[:4, k.B_DECODE].tolist() == [0, 3, 3, 0]
    assert w.timeline[:4, k.B_BUSY].tolist() == [0.5, 1.0, 0, 0]
    assert gaps_of(w) == {gap_bin(gap): n for gap, n in ((0.75, 1), (0.5, 2), (1.0, 3))}


def test_joules_of_a_step_are_booked_where_it_ends():
    """7 J of the step in flight; the next one's matrix units work a quarter of 2 s and its memory a 25th: of 200 W the
    square roots, 0.5 + 0.2; the third is 0.81 and 0.64 of 2 s, more than all. It is in flight, and not booked yet. The
    host bounds the third."""
    w = planned(1.0, 3.0, 5.0, 7.0)
    w.rates[0, k.DEVICE_WAYS], w.units[0, k.SPENT] = 2.0, 7.0
    w.ahead[0, k.AHEAD_MATRIX_S, 1:3] = 0.5, 1.62
    w.ahead[0, k.AHEAD_MEMORY_S, 1:3] = 0.08, 1.28
    w.ahead[0, k.AHEAD_HOST_BOUND_S, 1:4] = 0.0, 1.5, 9.0
    ahead.settle(w, 0, 3.0, True)
    assert w.timeline[:5, k.B_ENERGY] == pytest.approx([0, 7.0, 0, 280.0, 0])
    assert w.totals[[k.ENERGY, k.HOST_BOUND]] == pytest.approx([287.0, 1.5])
    assert w.rates[0, k.SPENT_J] == pytest.approx(287.0)
    assert w.units[0, k.SPENT] == pytest.approx(400.0)


def test_a_timeline_that_is_too_short_is_widened_first():
    w = planned(10.0, 20.0, 30.0, 40.0)
    ahead.settle(w, 0, 20.0, True)
    assert w.totals[k.WIDTH] == 2.0
    assert w.timeline[[5, 10], k.B_STEPS].tolist() == [1, 1]
    w = planned(8.0, 15.0, 16.0, 17.0)
    ahead.settle(w, 0, 15.5, True)
    assert w.totals[k.WIDTH] == 1.0
    ahead.settle(planned_again := planned(8.0, 16.0, 17.0), 0, 16.0, True)
    assert planned_again.totals[k.WIDTH] == 2.0


def test_gaps_between_tokens():
    """Who joined has waited since 0.25 s, the others since 0.5 s; then 1, 1.5 and 2 s between the tokens of three."""
    w = planned(1.0, 2.0, 3.5, 5.5, 7.0)
    ahead.settle(w, 0, 5.5, True)
    assert gaps_of(w) == {gap_bin(gap): n for gap, n in ((0.75, 1), (0.5, 2), (1.0, 3), (1.5, 3), (2.0, 3))}
    assert w.totals[k.GAP_SUM] == pytest.approx(0.75 + 1.0 + 3 * 4.5)
    assert w.totals[k.GAP_SQUARES] == pytest.approx(0.5625 + 0.5 + 3 * (1 + 2.25 + 4))


def test_gaps_of_one_bin_are_counted_there_and_others_where_they_belong():
    w = planned(1.0, 2.0, 3.0, 6.0, 7.0, 9.0)
    ahead.settle(w, 0, 7.0, True)
    assert gaps_of(w) == {gap_bin(gap): n for gap, n in ((0.75, 1), (0.5, 2), (1.0, 9), (3.0, 3))}


@pytest.mark.parametrize(("fresh", "counts"), [(0, {0.5: 3}), (3, {0.75: 3})])
def test_gaps_where_nobody_or_everybody_has_just_joined(fresh, counts):
    w = planned(1.0, 2.0)
    lane_of(w, 0, num_fresh=fresh)
    w.seats[0, k.SEAT_FRESH, :3], w.when[:3, k.LAST] = (0, 1, 2), 0.25
    ahead.settle(w, 0, 1.0, True)
    assert gaps_of(w) == {gap_bin(gap): n for gap, n in counts.items()}


def test_what_ran_waited_and_was_held_is_noted():
    """To 2 s since 0.25 s (the lane) and 0.75 s (the pool): 3 run, 2 wait; of 100 bytes 40 are free, 10 evictable."""
    w = planned(1.0, 2.0, 3.5, 5.0)
    lane_of(w, 0, num_waiting=2)
    w.memory.free[0], w.memory.evictable[0] = 40, 10
    w.rates[0, [k.NOTED_S, k.POOL_NOTED_S]] = 0.25, 0.75
    ahead.settle(w, 0, 2.0, True)
    assert w.timeline[:3, k.B_RUNNING].tolist() == [3 * 0.75, 3.0, 0]
    assert w.timeline[:3, k.B_WAITING].tolist() == [2 * 0.75, 2.0, 0]
    assert w.timeline[:3, k.B_KV].tolist() == [50 * 0.25, 50.0, 0]
    assert w.rates[0, [k.NOTED_S, k.POOL_NOTED_S]].tolist() == [2.0, 2.0]


def test_blocks_are_taken_since_the_step_that_needed_them():
    """Steps 11 and 12 are booked. Request 0 joined at step 5 with 26 tokens and two blocks: 26 + 11 - 5 = 32 fill them
    after eleven steps, so at its twelfth it takes a third, held from 1 s to 2 s; the next is due at 5 + 48 - 26 + 1.
    Request 1 ends with its second block; request 2 needs its third at the fourteenth step."""
    w = planned(1.0, 2.0, 3.5, 5.0)
    put(w, 0, computed=26, joined=5, blocks=2, input=20, output=20)
    put(w, 1, computed=25, joined=5, blocks=2, input=20, output=12)
    put(w, 2, computed=24, joined=5, blocks=2, input=20, output=20)
    w.seats[0, k.SEAT_BLOCK_DUE, :3] = 12, 13, 14
    w.memory.free[0] = 100
    ahead.settle(w, 0, 2.0, True)
    assert w.req[:3, k.BLOCKS].tolist() == [3, 2, 2]
    assert w.seats[0, k.SEAT_BLOCK_DUE, :3].tolist() == [28, k.NEVER, 14]
    assert w.memory.free[0] == 90
    assert w.timeline[:3, k.B_KV].tolist() == [0, 10.0, 0]


@pytest.mark.parametrize(("levels", "due"), [(0, 7 + 3 * 16 - 20 + 1), (2, 11)])
def test_when_a_request_needs_its_next_block(levels, due):
    """Three blocks of 16 of a request that joined with 20 tokens at step 7; with guesses perhaps at the next step."""
    w = lane()
    w.rules = w.rules._replace(draft_levels=levels)
    put(w, 0, computed=20, joined=7, blocks=3)
    assert ahead.block_due(w, 0, 0) == due
