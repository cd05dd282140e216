"""What requests hold and how they let go of it, one function at a time: blocks, loans, seats, queues, timelines."""

import numpy as np
import pytest
from small_state import copied_s, decode, lane_of, prefill, put, rules, state

from orrery.serving.simulation.allocation._kernel import (
    _fits_in,
    _later,
    enqueue,
    enter_next,
    fits_lane,
    give_back,
    give_back_lent,
    grow,
    hold_back,
    leave_prompts,
    leave_run,
    leave_seat,
    lender_for,
    look_far,
    mark_done,
    move_over_host,
    own_blocks,
    preempt,
    receive,
    report,
    return_one,
    room_to_lend,
    share_prefix,
    slot_of,
    tokens_left,
    touch_lane,
    use_adapter,
    victim_in,
)
from orrery.serving.simulation.memory._kernel import forget, publish, release, take
from orrery.serving.simulation.tables import _kernel as k
from orrery.serving.simulation.timeline._kernel import spread_over, widen_timeline


def test_own_blocks_and_borrowed_ones_are_given_back():
    """Five blocks, two of them at the lender, where 20 tokens of the step's attention lie."""
    w = state()
    put(w, 0, lane=0, lender=1, lent=2, blocks=5, lent_tokens=20)
    lane_of(w, 0, far=25)
    lane_of(w, 1, guests=30)
    w.memory.free[:] = 0
    give_back(w, 0)
    assert w.memory.free.tolist() == [30, 20]
    assert (w.lanes[0, k.FAR], w.lanes[1, k.GUESTS]) == (5, 10)
    assert w.req[0, [k.BLOCKS, k.LENT, k.LENT_TOKENS, k.LENDER]].tolist() == [0, 0, 0, -1]


@pytest.mark.parametrize(
    ("computed", "blocks", "whole"), [(100, 5, 2), (64, 9, 2), (63, 9, 1), (31, 9, 0), (300, 9, 3)]
)
def test_whole_prefix_blocks_that_are_computed_are_shared(computed, blocks, whole):
    """Prefix blocks of two blocks of 16 tokens; the request has ids for three; 5 blocks hold 80 tokens."""
    w = state(1, 1, ids=[[0, 1, 2]], blocks_each=2)
    put(w, 0, computed=computed, blocks=blocks)
    share_prefix(w, 0)
    assert w.req[0, k.SHARED] == whole
    assert w.memory.users.tolist() == [1] * whole + [-1] * (3 - whole)


@pytest.mark.parametrize("changed", [{"lent": 1}, {"dropped": 1}, {"shared": 2}])
def test_a_changed_cache_is_not_shared(changed):
    w = state(1, 1, ids=[[0, 1, 2]], blocks_each=2)
    put(w, 0, computed=64, blocks=5, **changed)
    share_prefix(w, 0)
    assert w.memory.users.tolist() == [-1, -1, -1]


def test_prefix_blocks_differ_in_size():
    """Blocks of 10, then 4 bytes each: prefix blocks of two have 20 and 8 bytes."""
    w = state(2, 1, ids=[[0, 1], [0, 1]], blocks_each=2, held=np.array([[0, 10, 20, 24, 28, 32]]))
    take(w.memory, 0, 28)
    publish(w.memory, 0, w.prefix_ids, 0, 0, 2, w.held[0], 2)
    assert w.memory.node_bytes[:2].tolist() == [20, 8]
    take(w.memory, 0, 28)  # another one computes the same, and its copy is free when it shares
    publish(w.memory, 0, w.prefix_ids, 2, 0, 2, w.held[0], 2)
    assert (w.memory.free[0], w.memory.users.tolist()) == (72, [2, 2])
    release(w.memory, 0, 0, 32, w.prefix_ids, 0, 2)  # 4 bytes were its alone
    assert (w.memory.evictable[0], w.memory.users.tolist()) == (4, [1, 1])
    release(w.memory, 0, 1, 28, w.prefix_ids, 2, 2)
    assert w.memory.evictable[0] == 32
    forget(w.memory, 0)
    assert (w.memory.free[0], w.memory.evictable[0], w.memory.users.tolist()) == (100, 0, [-1, -1])


def test_a_lost_pool_forgets_what_its_host_holds():
    """Two pools of one block each and room for one on the host: what is evicted goes there."""
    w = state(2, 2, blocks=1, host_blocks=1, ids=[[0], [1]], blocks_each=1)
    for pool in (0, 1):
        take(w.memory, pool, 10)
        publish(w.memory, pool, w.prefix_ids, 0, 0, 1, w.held[0], 1)
        release(w.memory, pool, 0, 10, w.prefix_ids, 0, 1)
        take(w.memory, pool, 10)
    assert (w.memory.host_free.tolist(), w.memory.on_host.tolist()) == ([0, 0], [1, 0, 1, 0])
    forget(w.memory, 1)
    assert (w.memory.host_free.tolist(), w.memory.on_host.tolist()) == ([0, 10], [1, 0, 0, 0])
    assert w.memory.free.tolist() == [0, 10]


def test_users_of_an_adapter_are_counted_where_it_is():
    w = state(places=3)
    w.slots[1, k.SLOT_ADAPTER] = [4, 7, 9]
    put(w, 0, adapter=7)
    put(w, 1, adapter=5)
    assert (slot_of(w, 1, 7), slot_of(w, 1, 5)) == (1, -1)
    for i in (0, 0, 1, 2):
        use_adapter(w, i, 1, 1)
    use_adapter(w, 0, 1, -1)
    assert w.slots[:, k.SLOT_REQUESTS].tolist() == [[0, 0, 0], [0, 1, 0]]


def test_whoever_leaves_a_seat_takes_what_it_made_along():
    """Joined at the lane's step 5 with 30 tokens computed, left after 9: 4 tokens more, the last of them at 7.5 s."""
    w = state()
    decode(w, 0, 3, 1, 2, context=100)
    lane_of(w, 0, steps=9, num_fresh=3)
    put(w, 3, joined=5, computed=30, made=1)
    put(w, 1, joined=9, computed=20, made=1)
    w.seats[0, k.SEAT_FRESH, :3] = [1, 3, 2]
    w.seats[0, k.SEAT_BLOCK_DUE, :3] = [10, 11, 12]
    w.seats[0, k.SEAT_END_DUE, :3] = [20, 21, 22]
    w.rates[0, k.DECODED_S] = 7.5
    leave_seat(w, 0, 0)
    assert w.req[3, [k.MADE, k.COMPUTED]].tolist() == [5, 34]
    assert (w.when[3, k.LAST], w.lanes[0, k.CONTEXT], w.lanes[0, k.NUM_DECODING]) == (7.5, 66, 2)
    assert w.seats[0, [k.SEAT_DECODING, k.SEAT_BLOCK_DUE, k.SEAT_END_DUE], :2].tolist() == [[2, 1], [12, 11], [22, 21]]
    assert w.seats[0, k.SEAT_FRESH, : w.lanes[0, k.NUM_FRESH]].tolist() == [1, 2]
    leave_seat(w, 0, 1)
    assert (w.req[1, k.MADE], w.when[1, k.LAST], w.lanes[0, k.CONTEXT]) == (1, 0.0, 46)


def test_prompts_keep_their_order():
    w = state()
    prefill(w, 1, 3, 1, 2, 0, grants=(5, 6, 7, 8))
    leave_prompts(w, 1, 1)
    assert w.lanes[1, k.NUM_PROMPTS] == 3
    assert w.seats[1, [k.SEAT_PROMPTS, k.SEAT_GRANTS], :3].tolist() == [[3, 2, 0], [5, 7, 8]]


def test_followers_come_after_their_pauses():
    """1 and 2 follow 0 after 2 and 3 s; 1 takes its place in the closed loop, so nobody else enters."""
    w = state()
    put(w, 0, first_follower=1, place=1)
    put(w, 1, next_follower=2)
    w.when[:, k.ENTER] = [0.0, 2.0, 3.0, 1.0]
    leave_run(w, 0, 10.0)
    assert w.due_s.tolist() == [0.0, 12.0, 13.0, 0.0]
    assert (w.counts[k.EVENTS], w.counts[k.SERVED], w.counts[k.UPCOMING]) == (1, 1, 0)
    assert w.req[:, k.PLACE].tolist() == [1, 1, 0, 0]


def test_the_next_request_takes_a_place_that_nobody_follows_into():
    w = state(order=np.array([2, 3]))
    w.when[:, k.ENTER] = [0.0, 0.0, 1.0, 4.0]
    put(w, 0, place=1)
    leave_run(w, 1, 5.0)  # had no place
    assert (w.counts[k.UPCOMING], w.counts[k.EVENTS]) == (0, -1)
    leave_run(w, 0, 5.0)
    assert (w.counts[k.UPCOMING], w.counts[k.EVENTS], w.due_s[2], w.req[2, k.PLACE]) == (1, 2, 6.0, 1)
    enter_next(w, 5.0)
    enter_next(w, 5.0)  # nobody is left
    assert (w.counts[k.UPCOMING], w.due_s[3], w.counts[k.EVENTS]) == (2, 9.0, 2)


def test_rows_of_what_is_told():
    w = state(rules=rules(reports=True), number=np.array([7, 8, 9, 10]))
    put(w, 1, status=k.DONE)
    report(w, 2, 1.5, 3, 0)
    leave_run(w, 1, 2.5)
    assert w.emitted[:2].tolist() == [[9, 3, 0], [8, 0, k.DONE]]
    assert (w.emitted_s[:2].tolist(), w.counts[k.EMITTED]) == ([1.5, 2.5], 2)


def test_a_request_is_served_by_its_machine():
    w = state(unit_machine=np.array([4, 6]))
    put(w, 0, lane=1)
    w.rates[1, k.LOAD_REQUESTS] = 3.0
    mark_done(w, 0, 2.5)
    assert w.req[0, [k.STATUS, k.MACHINE]].tolist() == [k.DONE, 6]
    assert (w.when[0, k.FINISH], w.rates[1, k.LOAD_REQUESTS], w.counts[k.SERVED]) == (2.5, 2.0, 1)
    assert w.timeline[:, k.B_FINISHES].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]


def test_levels_are_integrated_over_the_bins_that_they_cover():
    """Four run, three wait, 25 bytes are used: a quarter of a second inside a bin, then 2.5 s over four of them."""
    w = state()
    decode(w, 0, 0, 1)
    lane_of(w, 0, num_prompts=1, reserved=1, num_waiting=3)
    w.memory.free[0], w.memory.evictable[0] = 70, 5
    w.rates[0, [k.NOTED_S, k.POOL_NOTED_S]] = 0.5
    touch_lane(w, 0, 0.75)
    assert w.timeline[0, [k.B_RUNNING, k.B_WAITING, k.B_KV]].tolist() == [1.0, 0.75, 6.25]
    touch_lane(w, 0, 3.25)
    assert w.timeline[:5, k.B_RUNNING].tolist() == [2.0, 4.0, 4.0, 1.0, 0.0]
    assert w.timeline[:5, k.B_WAITING].tolist() == [1.5, 3.0, 3.0, 0.75, 0.0]
    assert w.timeline[:5, k.B_KV].tolist() == [12.5, 25.0, 25.0, 6.25, 0.0]
    assert w.rates[0, [k.NOTED_S, k.POOL_NOTED_S]].tolist() == [3.25, 3.25]
    assert w.rates[1, [k.NOTED_S, k.POOL_NOTED_S]].tolist() == [0.0, 0.0]


def test_two_lanes_of_a_pool_count_its_bytes_once():
    """The second lane is brought up to date a second after the first: only that second's bytes are new."""
    w = state()
    lane_of(w, 1, pool=0, num_waiting=1)
    w.memory.free[0] = 90
    touch_lane(w, 0, 0.25)
    touch_lane(w, 1, 0.75)
    assert w.timeline[0, [k.B_WAITING, k.B_KV]].tolist() == [0.75, 7.5]


def test_a_timeline_widens_by_pairs():
    """Eight bins of a second hold 9 s as bins of two: 1 + 2, 3 + 4, …; half of them are new."""
    w = state()
    w.timeline[:, 3] = np.arange(1.0, 9.0)
    widen_timeline(w, 9.0)
    assert w.timeline[:, 3].tolist() == [3.0, 7.0, 11.0, 15.0, 0.0, 0.0, 0.0, 0.0]
    assert w.totals[k.WIDTH] == 2.0
    widen_timeline(w, 15.9)
    assert w.totals[k.WIDTH] == 2.0
    widen_timeline(w, 16.0)
    assert w.totals[k.WIDTH] == 4.0
    lane_of(w, 0, num_waiting=1)
    touch_lane(w, 0, 40.0)  # as whoever looks at it that late finds it
    assert (w.totals[k.WIDTH], w.timeline[:, k.B_WAITING].sum()) == (8.0, 40.0)


def test_an_integral_over_nothing_adds_nothing():
    timeline = np.zeros((4, 1))
    spread_over(timeline, 1.0, 0, 1.0, 1.0, 5.0)
    spread_over(timeline, 1.0, 0, 2.0, 1.0, 5.0)
    spread_over(timeline, 1.0, 0, 0.0, 3.0, 0.0)
    assert timeline.sum() == 0.0
    spread_over(timeline, 2.0, 0, 1.0, 7.0, 5.0)
    assert timeline.ravel().tolist() == [5.0, 10.0, 10.0, 5.0]


def test_blocks_for_tokens():
    w = state(blocks=3)
    put(w, 0, lane=0, blocks=1)
    assert grow(w, 0, 16)
    assert w.memory.free[0] == 30
    assert grow(w, 0, 17)
    assert (w.req[0, k.BLOCKS], w.memory.free[0]) == (2, 20)
    assert not grow(w, 0, 80)
    assert (w.req[0, k.BLOCKS], w.memory.free[0]) == (2, 20)


def test_blocks_are_borrowed_where_most_room_is():
    """One block here, room for two more: three stay here, and two of five come from the lane with 50 bytes."""
    w = state(lanes=4, lending_s=0.0)
    lane_of(w, 3, role=k.ANSWERS)
    w.memory.free[:] = [20, 40, 50, 90]
    put(w, 0, lane=0, blocks=1)
    assert lender_for(w, 0) == 2
    assert grow(w, 0, 80)
    assert w.req[0, [k.BLOCKS, k.LENT, k.LENDER]].tolist() == [5, 2, 2]
    assert w.memory.free.tolist() == [0, 40, 30, 90]
    w.memory.free[0] = 10  # whoever has borrowed goes on there
    assert grow(w, 0, 81)
    assert w.req[0, [k.BLOCKS, k.LENT]].tolist() == [6, 3]
    assert w.memory.free.tolist() == [10, 40, 20, 90]
    assert not grow(w, 0, 144)  # two pools can hold nine blocks: one lender has to have the room
    assert w.memory.free.tolist() == [10, 40, 20, 90]


def test_what_two_pools_cannot_hold_is_borrowed_from_several():
    """Pools of four blocks: of nine four are here, three where most room is, and two with the other."""
    w = state(lanes=3, blocks=4, lending_s=0.0)
    put(w, 0, lane=0)
    w.memory.free[:] = [40, 40, 30]
    assert room_to_lend(w, 0, 1, 8) == 40
    assert room_to_lend(w, 0, 1, 9) == 70
    w.memory.free[1] = 20
    assert not grow(w, 0, 8 * 16)  # two pools hold eight, and no lender has four
    assert grow(w, 0, 9 * 16)
    assert w.memory.free.tolist() == [0, 0, 0]
    assert w.req[0, [k.BLOCKS, k.LENT, k.LENDER]].tolist() == [9, 5, 2]
    assert w.lent[0, :, 0].tolist() == [0, 20, 0]


def test_what_several_lenders_hold_is_given_back_to_each():
    """Six blocks of nine away, one of them with a second lender: its 10 of 60 bytes are 8 of 51 tokens."""
    w = state(lanes=4, lending_s=0.0)
    decode(w, 0, 0)
    put(w, 0, lane=0, lender=2, lent=6, blocks=9, computed=98)
    w.lent[0, 1, 0] = 10
    w.memory.free[:] = 0
    look_far(w, 0)
    assert (w.req[0, k.LENT_TOKENS], w.lanes[0, k.FAR]) == (51, 51)
    assert w.lanes[:, k.GUESTS].tolist() == [0, 8, 43, 0]
    look_far(w, 0)  # nothing new is counted twice
    assert w.lanes[:, k.GUESTS].tolist() == [0, 8, 43, 0]
    give_back(w, 0)
    assert w.memory.free.tolist() == [30, 10, 50, 0]
    assert not w.lanes[:, [k.GUESTS, k.FAR]].any()
    assert not w.lent.any()


def test_further_lenders_are_free_first():
    w = state(lanes=4, lending_s=0.0)
    w.lent[0, 1, 0], w.lent[0, 3, 0] = 10, 25
    w.memory.free[:] = 0
    lane_of(w, 3, role=k.ANSWERS)  # holds what was borrowed for answers
    give_back_lent(w, 0, 2, 8)
    assert (w.memory.free.tolist(), w.lent[0, :, 0].tolist()) == ([0, 8, 0, 0], [0, 2, 0, 25])
    give_back_lent(w, 0, 2, 12)
    assert (w.memory.free.tolist(), w.lent[0, :, 0].tolist()) == ([0, 10, 10, 0], [0, 0, 0, 25])


def test_nobody_lends_within_a_pool_or_to_other_work():
    w = state(lanes=3, lending_s=0.0)
    lane_of(w, 1, pool=0)
    lane_of(w, 2, role=k.PROMPTS)
    w.memory.free[0] = 0
    put(w, 0, lane=0)
    assert lender_for(w, 0) == -1
    assert not grow(w, 0, 1)


def test_as_many_blocks_as_bytes_are_free():
    held = np.array([0, 10, 20, 25, 30])
    assert [own_blocks(held, 1, 4, free) for free in (20, 19, 15, 14, 10, 9, 0)] == [4, 3, 3, 2, 2, 1, 1]


def test_a_sequence_fits_into_a_pool_or_into_all():
    """Pools of 10 and 3 blocks; tables reach to 39."""
    w = state(blocks=10)
    lane_of(w, 1, deployment=0)
    assert fits_lane(w, 0, 160)
    assert not fits_lane(w, 0, 161)
    lane_of(w, 0, pooled=400)
    assert fits_lane(w, 0, 39 * 16)
    assert not fits_lane(w, 0, 39 * 16 + 1)
    w.lending_s = 0.0
    w.memory.capacity[1] = 30
    lane_of(w, 0, pooled=130)
    assert fits_lane(w, 0, 13 * 16)
    assert not fits_lane(w, 0, 13 * 16 + 1)
    lane_of(w, 0, pooled=400)
    assert _fits_in(w, 0, 13, True)
    assert not _fits_in(w, 0, 14, True)
    wider = state(lanes=3, blocks=10, lending_s=0.0)
    for all_lend, most in ((True, 30), (False, 20)):
        assert _fits_in(wider, 0, most, all_lend)
        assert not _fits_in(wider, 0, most + 1, all_lend)


def test_tokens_at_the_lender_are_counted():
    """Five blocks, two of them away: of 60 + 4 + 1 tokens all beyond 48 are there, two more than a step before."""
    w = state()
    decode(w, 0, 0, 1)
    put(w, 0, lender=1, lent=2, blocks=5, computed=60, joined=3, lent_tokens=15)
    put(w, 1, blocks=1, computed=9)
    lane_of(w, 0, steps=7, far=15)
    lane_of(w, 1, guests=15)
    look_far(w, 0)
    assert (w.req[0, k.LENT_TOKENS], w.lanes[0, k.FAR], w.lanes[1, k.GUESTS]) == (17, 17, 17)
    put(w, 0, computed=20)
    look_far(w, 0)
    assert (w.req[0, k.LENT_TOKENS], w.lanes[0, k.FAR], w.lanes[1, k.GUESTS]) == (0, 0, 0)


def test_the_last_one_admitted_must_go():
    w = state(lanes=3)
    decode(w, 0, 0, 1)
    prefill(w, 1, 2)
    decode(w, 2, 3)
    w.req[:, k.TURN] = [1, 3, 2, 9]
    assert (victim_in(w, 0), victim_in(w, 1)) == (1, 2)
    lane_of(w, 1, pool=0)
    w.req[2, k.TURN] = 4
    assert victim_in(w, 0) == 2
    w.lending_s = 0.0
    assert victim_in(w, 0) == 3
    lane_of(w, 2, role=k.ANSWERS)
    assert victim_in(w, 0) == 2


def test_the_last_in_the_order_of_the_queue_must_go():
    w = state(rules=rules(evicts_by_key=True), key=np.array([5.0, 4.0, 5.0, 1.0]))
    w.req[:, k.TURN] = [1, 3, 2, 9]
    assert [_later(w, 0, 1), _later(w, 3, 1), _later(w, 0, 2), _later(w, 2, 0), _later(w, 3, -1)] == [0, 1, 2, 2, 3]


def test_a_preempted_answer_is_computed_again():
    w = state()
    decode(w, 0, 0, 1, context=70)
    put(w, 1, input=30, output=9, made=2, computed=31, blocks=2, turn=2)
    w.memory.free[0] = 80
    preempt(w, copied_s, 0, 1, 1.5)
    assert w.req[1, [k.STATUS, k.COMPUTED, k.BLOCKS, k.PREEMPTED]].tolist() == [k.WAITING, 0, 0, 1]
    assert (w.memory.free[0], w.lanes[0, k.NUM_DECODING], w.lanes[0, k.WAITING_ROOT]) == (100, 1, 1)
    assert (w.tally[0, k.T_PREEMPTED], w.timeline[1, k.B_PREEMPTED]) == (1, 1.0)
    assert (w.lanes[0, k.NUM_WAITING], w.totals[k.SWAPPED_BYTES]) == (1, 0.0)


def test_a_preempted_prompt_loses_its_seat():
    w = state(rules=rules(swaps=True))
    prefill(w, 0, 0, 1, 2, grants=(3, 4, 5))
    put(w, 1, output=9, computed=31, blocks=2)
    preempt(w, copied_s, 0, 1, 1.5)
    assert w.seats[0, k.SEAT_PROMPTS, :2].tolist() == [0, 2]
    assert (w.req[1, k.STATUS], w.req[1, k.COMPUTED], w.totals[k.SWAPPED_BYTES]) == (k.WAITING, 0, 0.0)


def test_a_swapped_answer_keeps_its_tokens_and_the_needy_lane_waits():
    """Two blocks, 20 bytes at a byte a second after half a second."""
    w = state(rules=rules(swaps=True, guess_knob=2))
    decode(w, 0, 0)
    put(w, 0, output=9, computed=31, made=3, blocks=2)
    w.rates[1, k.HOST_LATENCY_S] = 0.5
    preempt(w, copied_s, 1, 0, 1.5)
    assert (w.req[0, k.STATUS], w.req[0, k.COMPUTED]) == (k.SWAPPED, 31)
    assert (w.step[:, k.N_DELAY_S].tolist(), w.totals[k.SWAPPED_BYTES], w.totals[k.SWAPPED_S]) == (
        [0.0, 20.5],
        20,
        20.5,
    )
    assert (w.guesses[0], w.swapped[0], w.knobs[k.SWAP, 2]) == (1, 0, 1.0)


def test_a_complete_answer_is_not_preempted_but_leaves():
    w = state()
    decode(w, 0, 0)
    put(w, 0, output=3, made=3, blocks=2)
    preempt(w, copied_s, 0, 0, 1.5)
    assert (w.req[0, k.STATUS], w.when[0, k.FINISH], w.req[0, k.PREEMPTED]) == (k.DONE, 1.5, 0)
    put(w, 1, status=k.DONE, blocks=2, lane=0)
    return_one(w, 1, 9.0)
    assert (w.req[1, k.BLOCKS], np.isnan(w.when[1, k.FINISH])) == (0, True)


def test_tokens_to_come():
    w = state()
    put(w, 0, input=30, output=9)
    put(w, 1, input=30, output=9, made=2)
    put(w, 2, input=30, output=9, made=11)
    assert [tokens_left(w, i) for i in range(3)] == [39, 7, 0]


def test_queues_go_by_key_and_unseen_ones_wait_for_a_look():
    w = state(key=np.array([3.0, 1.0, 2.0, 0.5]))
    lane_of(w, 1, recv_interval=6)
    for i in (0, 1):
        enqueue(w, i, 1)
    for i in (2, 3):
        hold_back(w, i, 1)
    assert w.lanes[1, [k.NUM_WAITING, k.WAITING_ROOT, k.UNSEEN]].tolist() == [4, 1, 3]
    receive(w, 1)
    assert w.lanes[1, [k.NUM_WAITING, k.WAITING_ROOT, k.UNSEEN, k.UNTIL_RECV]].tolist() == [4, 3, -1, 6]


def test_a_move_over_the_host_holds_the_step_up():
    w = state()
    w.rates[1, [k.HOST_BYTES_PER_S, k.HOST_LATENCY_S]] = [4.0, 0.25]
    move_over_host(w, copied_s, 1, 8)
    move_over_host(w, copied_s, 1, 4)
    assert (w.step[1, k.N_DELAY_S], w.totals[k.SWAPPED_BYTES], w.totals[k.SWAPPED_S]) == (3.5, 12.0, 3.5)
