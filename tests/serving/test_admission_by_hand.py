"""Who joins a batch, one function at a time; what its next step then holds is in test_batch_steps_by_hand."""

import numpy as np
import pytest
from small_state import LOAD, copied_s, decode, granted, lane_of, prefill, put, rules, state, waiting

from orrery.serving.simulation.admission._kernel import (
    _add_prompts,
    _admit,
    _admit_prompt,
    _admit_ready,
    _can_borrow,
    _continue_prompts,
    _group_layers,
    _grow_decodes,
    _place_for,
    _take_place,
    book_arrival,
    cached_ids_of,
    join_batch,
    reserves_at,
    seated,
)
from orrery.serving.simulation.memory._kernel import publish, release, take
from orrery.serving.simulation.tables import _kernel as k


def whole(left, budget, taken, step_tokens, knobs):
    """A prompt alone, or none beside another."""
    return 0 if taken else left


def test_a_seat_among_answers():
    """Seven of nine tokens are to come. 31 tokens are in two blocks: the second step from now needs a third."""
    w = state()
    decode(w, 0, 0, context=10)
    lane_of(w, 0, steps=5, num_fresh=1, next_end=14)
    put(w, 1, input=30, output=9, made=2, computed=31, blocks=2)
    join_batch(w, 1, 0)
    assert w.lanes[0, [k.NUM_DECODING, k.CONTEXT, k.NEXT_END, k.NUM_FRESH]].tolist() == [2, 41, 12, 2]
    assert w.req[1, [k.STATUS, k.JOINED]].tolist() == [k.DECODING, 5]
    assert w.seats[0, [k.SEAT_DECODING, k.SEAT_END_DUE, k.SEAT_BLOCK_DUE, k.SEAT_FRESH], 1].tolist() == [1, 12, 7, 1]


def test_a_complete_answer_that_waits_for_its_batch_makes_no_token():
    w = state()
    lane_of(w, 0, steps=5)
    put(w, 1, output=2, made=2, computed=31, blocks=2)
    join_batch(w, 1, 0)
    assert w.lanes[0, [k.NUM_FRESH, k.NEXT_END]].tolist() == [0, 5]


def test_where_tokens_are_guessed_no_end_is_known():
    w = state(rules=rules(draft_levels=3))
    lane_of(w, 0, steps=5)
    put(w, 1, output=9, made=2, computed=31, blocks=2)
    put(w, 2, output=9, made=9, computed=31, blocks=2)
    join_batch(w, 1, 0)
    join_batch(w, 2, 0)
    assert w.seats[0, [k.SEAT_END_DUE, k.SEAT_BLOCK_DUE], :2].tolist() == [[k.NEVER, 5], [6, 6]]


def test_a_swapped_answer_comes_back_over_the_host():
    """31 tokens are two blocks of 10 bytes, at 4 bytes/s after 1 s; whole answers would be reserved with 35 tokens."""
    for reserves, blocks in ((False, 2), (True, 3)):
        w = state(rules=rules(reserves_output=reserves))
        put(w, 1, status=k.SWAPPED, input=30, output=9, dropped=4, made=2, computed=31)
        w.rates[0, [k.HOST_BYTES_PER_S, k.HOST_LATENCY_S]] = [4.0, 1.0]
        assert _admit_ready(w, copied_s, copied_s, 1, 0, 5.0)
        assert (w.req[1, k.STATUS], w.req[1, k.BLOCKS], w.memory.free[0]) == (k.DECODING, blocks, 100 - 10 * blocks)
        assert (w.step[0, k.N_DELAY_S], w.totals[k.SWAPPED_BYTES]) == (6.0, 20.0)
    w.memory.free[0] = 20
    put(w, 2, status=k.SWAPPED, input=30, output=9, computed=31)
    assert not _admit_ready(w, copied_s, copied_s, 2, 0, 5.0)
    assert (w.req[2, k.BLOCKS], w.lanes[0, k.NUM_DECODING]) == (0, 1)


def test_the_block_of_a_swapped_answers_next_token_is_taken_too():
    w = state()
    put(w, 1, status=k.SWAPPED, input=30, output=9, made=2, computed=32)
    assert _admit_ready(w, copied_s, copied_s, 1, 0, 5.0)
    assert (w.req[1, k.BLOCKS], w.totals[k.SWAPPED_BYTES]) == (3, 20.0)


@pytest.mark.parametrize(
    ("layers", "made", "ends"), [(1, 1, (11.0, 17.0)), (2, 1, (9.0, 16.0)), (2, 2, (12.0, 19.0)), (40, 1, (47.0, 92.0))]
)
def test_caches_cross_a_link_one_after_the_other(layers, made, ends):
    """20 bytes at 4 a second after 1 s are 6 s, or in two layers 3.5 s each; the link is free at 2 s. Prompts were
    computed from 0 to 4 s, so a first layer is there at 2 s (of 40: 0.1 s, each 1.125 s), unless they were computed
    again."""
    w = state(rules=rules(transfer_layers=layers))
    w.rates[1, [k.LINK_BYTES_PER_S, k.LINK_LATENCY_S, k.LINK_S]] = [4.0, 1.0, 2.0]
    for i in (0, 1):
        put(w, i, status=k.WAITING, source=1, input=30, output=9, made=made, computed=31)
        w.when[i, [k.ADMITTED_S, k.LAST]] = [0.0, 4.0]
    assert _admit_ready(w, copied_s, copied_s, 0, 0, 5.0)
    assert _admit_ready(w, copied_s, copied_s, 1, 0, 6.0)
    assert (w.due_s[:2].tolist(), w.rates[1, k.LINK_S]) == (list(ends), ends[1])
    assert (w.totals[k.MOVED], w.totals[k.MOVED_S], w.lanes[0, k.RESERVED]) == (40.0, ends[1] - 5.0, 2)
    assert w.req[:2, k.STATUS].tolist() == [k.MOVING] * 2


def test_the_last_layer_goes_over_after_the_prompt():
    """A fast link, 0.5 s and 10 bytes at 20 a second a layer, is done with the first layer when the second one is
    computed, at 4 s; nothing was free before 5 s."""
    w = state(rules=rules(transfer_layers=2))
    w.rates[1, [k.LINK_BYTES_PER_S, k.LINK_LATENCY_S, k.LINK_S]] = [20.0, 0.5, 0.0]
    put(w, 0, status=k.WAITING, source=1, input=30, output=9, made=1, computed=31)
    w.when[0, [k.ADMITTED_S, k.LAST]] = [0.0, 4.0]
    assert _admit_ready(w, copied_s, copied_s, 0, 0, 5.0)
    assert w.due_s[0] == 6.0


@pytest.mark.parametrize(("made", "streams", "first_s"), [(1, False, 5.0), (2, False, 3.0), (1, True, 3.0)])
def test_a_cache_has_come(made, streams, first_s):
    """The source is free of two blocks of its own and one that a third lane lent."""
    w = state(lanes=3, rules=rules(prompts_stream_first=streams, reports=True))
    w.memory.free[:] = 0
    put(w, 1, lane=0, made=made, source=1, source_blocks=3, source_lender=2, source_lent=1)
    w.when[1, [k.FIRST, k.LAST]] = 3.0
    book_arrival(w, 1, 5.0)
    assert w.when[1, [k.FIRST, k.LAST]].tolist() == [first_s, first_s]
    assert w.memory.free.tolist() == [0, 20, 10]
    assert w.req[1, [k.SOURCE, k.SOURCE_BLOCKS, k.SOURCE_LENT]].tolist() == [-1, 0, 0]
    assert (w.lanes[0, k.NUM_READY], w.seats[0, k.SEAT_READY, 0]) == (1, 1)
    assert w.counts[k.EMITTED] == (first_s == 5.0)


def test_a_prompt_takes_blocks_for_all_of_it():
    w = state(rules=rules(reserves_output=True))
    put(w, 1, input=30, output=9)
    assert _admit_prompt(w, 1, 0, 12, 0)
    assert w.req[1, [k.STATUS, k.BLOCKS, k.COMPUTED, k.CACHED]].tolist() == [k.PREFILLING, 3, 0, 0]
    assert w.tally[0, [k.T_QUERIED, k.T_HIT]].tolist() == [30, 0]
    assert w.seats[0, [k.SEAT_PROMPTS, k.SEAT_GRANTS], 0].tolist() == [1, 12]
    assert w.lanes[0, k.NUM_PROMPTS] == 1


def cached(host_blocks=0, blocks=3):
    """Two of three prefix blocks of 16 tokens are there, and nobody uses them."""
    w = state(2, 1, ids=[[0, 1, 2], [0, 1, 2]], blocks_each=1, blocks=blocks, host_blocks=host_blocks)
    take(w.memory, 0, 20)
    publish(w.memory, 0, w.prefix_ids, 0, 0, 2, w.held[0], 1)
    release(w.memory, 0, 0, 20, w.prefix_ids, 0, 2)
    put(w, 1, input=40, output=9)
    return w


def test_a_prompt_finds_its_prefix():
    """32 of 40 tokens are there: one block more is needed, and free."""
    w = cached()
    assert cached_ids_of(w, 1, 0) == 2
    assert _admit_prompt(w, 1, 0, 8, 2)
    assert w.req[1, [k.BLOCKS, k.SHARED, k.COMPUTED, k.CACHED]].tolist() == [3, 2, 32, 32]
    assert w.tally[0, [k.T_QUERIED, k.T_HIT]].tolist() == [40, 32]
    assert (w.memory.free[0], w.memory.evictable[0], w.step[0, k.N_LOAD]) == (0, 0, 0.0)


def test_a_prompt_that_comes_back_is_not_counted_again():
    w = cached()
    w.when[1, k.ADMITTED_S] = 1.0
    assert _admit_prompt(w, 1, 0, 8, 2)
    assert (w.req[1, k.CACHED], w.req[1, k.COMPUTED], w.tally[0].sum()) == (0, 32, 0)


def test_a_prefix_without_room_beside_it_is_left_alone():
    w = cached(blocks=2)
    assert not _admit_prompt(w, 1, 0, 8, 2)
    assert (w.memory.evictable[0], w.req[1, k.BLOCKS], w.lanes[0, k.NUM_PROMPTS]) == (20, 0, 0)


def test_a_prefix_on_the_host_is_loaded():
    """The last of two blocks went to the host for somebody's sake; it comes back as 10 bytes."""
    w = cached(host_blocks=2)
    assert take(w.memory, 0, 20)
    w.memory.free[0] += 20
    assert cached_ids_of(w, 1, 0) == 2
    assert _admit_prompt(w, 1, 0, 8, 2)
    assert w.step[0, k.N_LOAD] == 10.0


def test_a_token_at_least_is_computed():
    w = cached()
    for length, found in ((32, 1), (33, 2), (16, 0), (17, 1)):
        put(w, 1, input=length)
        assert cached_ids_of(w, 1, 0) == found
    put(w, 1, input=32, made=1)
    assert cached_ids_of(w, 1, 0) == 2
    put(w, 1, dropped=1)
    assert cached_ids_of(w, 1, 0) == 0
    put(w, 1, dropped=0)
    w.prefix_end[1] -= 2  # it has one id
    assert cached_ids_of(w, 1, 0) == 1


def test_answers_are_reserved_where_they_are_made():
    w = state(lanes=4, rules=rules(reserves_output=True))
    lane_of(w, 1, role=k.PROMPTS)
    lane_of(w, 2, role=k.PROMPTS, twin=3)
    lane_of(w, 3, role=k.ANSWERS)
    assert [bool(reserves_at(w, lane)) for lane in range(4)] == [True, False, True, True]
    w.rules = rules()
    assert not reserves_at(w, 0)


def test_what_can_be_borrowed():
    """One block is here and five are needed; 20 bytes are left for two more, and two must come from elsewhere."""
    w = state(lending_s=0.0)
    for free, can in ((20, True), (19, False)):
        w.memory.free[1] = free
        assert bool(_can_borrow(w, 0, 1, 5, 20)) == can
    wider = state(lanes=3, blocks=2, lending_s=0.0)
    wider.memory.free[1:] = 10, 10
    assert _can_borrow(wider, 0, 1, 5, 20), "two pools hold four blocks: one from each lender"
    assert not _can_borrow(wider, 0, 1, 4, 10), "they hold these, and no lender has two"
    w.lending_s = -1.0
    w.memory.free[1] = 100
    assert not _can_borrow(w, 0, 1, 5, 20)


def test_seats_are_shared_by_the_lanes_of_a_split_machine():
    w = state(lanes=3)
    lane_of(w, 0, num_decoding=1, num_prompts=2, reserved=3, twin=1)
    lane_of(w, 1, num_decoding=10, num_prompts=20, reserved=30)
    assert (seated(w, 0), seated(w, 1), seated(w, 2)) == (66, 60, 0)
    lane_of(w, 1, twin=0)
    assert seated(w, 1) == 66


def test_the_queue_is_admitted_while_tokens_last():
    """100 tokens, 10 of them taken: 40, then 50 of 60, then none for the third."""
    w = state()
    for i, size in enumerate((40, 60, 20)):
        put(w, i, input=size, output=2)
    waiting(w, 0, 0, 1, 2)
    assert _admit(w, granted, copied_s, copied_s, 0, 1.5, 100, 10) == 100
    assert w.seats[0, [k.SEAT_PROMPTS, k.SEAT_GRANTS], :2].tolist() == [[0, 1], [40, 50]]
    assert w.lanes[0, [k.NUM_PROMPTS, k.NUM_WAITING, k.WAITING_ROOT]].tolist() == [2, 1, 2]
    assert w.req[:3, k.TURN].tolist() == [1, 2, 0]
    np.testing.assert_array_equal(w.when[:3, k.ADMITTED_S], [1.5, 1.5, np.nan])
    assert w.tag[0] == 1.0  # the key of the last one


def test_whoever_was_admitted_before_keeps_the_time():
    w = state()
    put(w, 0, input=40, output=2)
    w.when[0, k.ADMITTED_S] = 0.5
    waiting(w, 0, 0)
    _admit(w, granted, copied_s, copied_s, 0, 1.5, 100, 0)
    assert (w.when[0, k.ADMITTED_S], w.counts[k.ADMITTED]) == (0.5, 1)


def test_the_queue_is_admitted_while_seats_and_blocks_last():
    w = state(blocks=4)
    for i in range(4):
        put(w, i, input=20, output=2)
    lane_of(w, 0, max_seqs=1)
    waiting(w, 0, 0, 1, 2, 3)
    assert _admit(w, granted, copied_s, copied_s, 0, 0.0, 100, 0) == 20
    lane_of(w, 0, max_seqs=8)
    assert _admit(w, granted, copied_s, copied_s, 0, 0.0, 80, 20) == 40  # 4 blocks are gone
    assert w.lanes[0, [k.NUM_PROMPTS, k.NUM_WAITING]].tolist() == [2, 2]


def test_a_returning_answer_takes_a_token_of_the_budget():
    """Mixed steps: with a guess checked it takes two of 30, so that 28 are left to a prompt of 30."""
    for mixes, tokens in ((True, 28), (False, 30)):
        w = state(rules=rules(mixes=mixes, checked_tokens=1))
        put(w, 0, input=20, output=9, computed=20)
        put(w, 1, input=30, output=9)
        waiting(w, 0, 0, 1)
        put(w, 0, status=k.SWAPPED)
        assert _admit(w, granted, copied_s, copied_s, 0, 0.0, 30, 0) == tokens
        assert w.lanes[0, [k.NUM_DECODING, k.NUM_PROMPTS]].tolist() == [1, 1]


def test_batches_that_wait_for_empty_admit_without_tokens():
    for waits, prompts in ((True, 2), (False, 1)):
        w = state(rules=rules(waits_for_empty=waits))
        for i in (0, 1):
            put(w, i, input=20, output=2)
        waiting(w, 0, 0, 1)
        _admit(w, whole, copied_s, copied_s, 0, 0.0, 100, 0)
        assert w.lanes[0, k.NUM_PROMPTS] == prompts


def test_requests_without_a_place_for_their_adapter_are_passed_over():
    """One place, in use by adapter 3: the first in the queue (5) waits, the second (3) and third (none) go on."""
    w = state(places=1)
    w.slots[0, :, 0] = [3, 1, 0]
    for i, adapter in enumerate((5, 3, -1)):
        put(w, i, input=20, output=2, adapter=adapter)
    waiting(w, 0, 0, 1, 2)
    assert _admit(w, granted, copied_s, copied_s, 0, 0.0, 100, 0) == 40
    assert w.lanes[0, [k.NUM_PROMPTS, k.NUM_WAITING, k.WAITING_ROOT]].tolist() == [2, 1, 0]
    assert w.slots[0, k.SLOT_REQUESTS, 0] == 2


def test_an_adapter_takes_the_place_that_is_longest_unused():
    """Of three places the first is in use, the second was used last at turn 7 and the third at 4."""
    w = state(places=3)
    w.slots[0] = [[1, 2, 3], [1, 0, 0], [9, 7, 4]]
    w.retained[0, k.ADAPTER_BYTES], w.counts[k.ADMITTED] = 8.0, 11
    w.rates[0, [k.HOST_BYTES_PER_S, k.HOST_LATENCY_S]] = [4.0, 0.5]
    put(w, 0, adapter=6)
    put(w, 1, adapter=2)
    assert [_place_for(w, i, 0) for i in (0, 1, 2)] == [2, 1, 0]
    _take_place(w, copied_s, 0, 0)
    _take_place(w, copied_s, 1, 0)
    _take_place(w, copied_s, 2, 0)
    assert w.slots[0].tolist() == [[1, 2, 6], [1, 1, 1], [9, 11, 11]]
    assert (w.step[0, k.N_DELAY_S], w.totals[k.ADAPTER_LOADS], w.totals[k.ADAPTER_LOAD_S]) == (2.5, 1.0, 2.5)
    put(w, 3, adapter=8)
    assert _place_for(w, 3, 0) == -1


def growing(rest=100):
    """Two answers at the lane's step 4: the first has 32 tokens in two blocks, the second 40 in three."""
    w = state(blocks=9)
    decode(w, 0, 0, 1)
    lane_of(w, 0, steps=4)
    put(w, 0, input=20, output=90, joined=2, computed=30, blocks=2, turn=1)
    put(w, 1, input=20, output=90, joined=4, computed=40, blocks=3, turn=2)
    w.seats[0, k.SEAT_BLOCK_DUE, :2] = [5, 13]
    w.memory.free[0] = rest
    return w


def test_answers_get_a_block_when_it_is_due():
    """The next step makes the first one's 33rd token; its third block is full 16 steps on."""
    w = growing()
    assert not _grow_decodes(w, copied_s, 0, 0.0)
    assert w.req[:2, k.BLOCKS].tolist() == [3, 3]
    assert w.seats[0, k.SEAT_BLOCK_DUE, :2].tolist() == [2 + 3 * 16 - 30 + 1, 13]
    assert w.memory.free[0] == 90


def test_a_full_answer_needs_no_block():
    w = growing()
    put(w, 0, output=12)
    assert not _grow_decodes(w, copied_s, 0, 0.0)
    assert (w.seats[0, k.SEAT_BLOCK_DUE, 0], w.req[0, k.BLOCKS]) == (k.NEVER, 2)


def test_guesses_need_room_too():
    """32 tokens, one more and four guesses; but no more than prompt and answer: of 35 tokens all."""
    w = growing()
    w.rules = rules(draft_levels=16)
    assert not _grow_decodes(w, copied_s, 0, 0.0)
    assert w.req[:2, k.BLOCKS].tolist() == [4, 3]
    assert w.seats[0, k.SEAT_BLOCK_DUE, :2].tolist() == [6, 13]
    w = growing()
    w.rules = rules(draft_levels=16)
    put(w, 0, output=15)
    _grow_decodes(w, copied_s, 0, 0.0)
    assert w.req[0, k.BLOCKS] == 3


def test_without_a_block_the_last_one_goes():
    w = growing(rest=0)
    assert _grow_decodes(w, copied_s, 0, 0.0)
    assert (w.lanes[0, k.NUM_DECODING], w.req[1, k.STATUS], w.req[0, k.BLOCKS]) == (1, k.WAITING, 3)


def test_prompts_under_way_go_first():
    """Of 60 tokens 20 go to what is left of the first prompt, 40 to the second, none to the third."""
    w = state(lanes=1)
    prefill(w, 0, 0, 1, 2)
    for i, (size, computed) in enumerate(((50, 30), (90, 0), (20, 10))):
        put(w, i, input=size, computed=computed)
    assert _continue_prompts(w, granted, copied_s, 0, 0.0, 60) == 60
    assert w.seats[0, k.SEAT_GRANTS, :3].tolist() == [20, 40, 0]
    assert w.req[:3, k.BLOCKS].tolist() == [4, 3, 0]


def test_a_prompt_without_blocks_throws_the_last_one_out():
    """Two blocks are left, and the second prompt needs three: it is the last one and goes; -1 - 20 tokens say so."""
    w = state(lanes=1, blocks=6)
    prefill(w, 0, 0, 1)
    put(w, 0, input=50, computed=30, blocks=4, turn=1)
    put(w, 1, input=90, output=9, turn=2)
    w.memory.free[0] = 20
    assert _continue_prompts(w, granted, copied_s, 0, 0.0, 60) == -21
    assert (w.lanes[0, k.NUM_PROMPTS], w.req[1, k.STATUS]) == (1, k.WAITING)
    w = state(lanes=1)
    prefill(w, 0, 0)
    put(w, 0, input=50, computed=30, made=3)
    assert _continue_prompts(w, lambda *_: -5, copied_s, 0, 0.0, 60) == 0
    assert w.seats[0, k.SEAT_GRANTS, 0] == 0


def test_the_load_of_prompts():
    """20 after 30 cached: 20 x 40 pairs; 10 from nothing: 50. Padded both are 20 from nothing, 10 of 40 for nothing."""
    w = state(lanes=1)
    prefill(w, 0, 0, 1, 2, grants=(20, 0, 10))
    put(w, 0, computed=30)
    _add_prompts(w, 0)
    assert w.step[0, LOAD[:3]].tolist() == [2.0, 30.0, 850.0]
    w.rules = rules(pads_prompts=True)
    _add_prompts(w, 0)
    assert w.step[0, LOAD[:3]].tolist() == [2.0, 40.0, 400.0]
    assert w.rates[0, k.PROMPT_PADDING] == 10.0


def test_groups_of_layers():
    """130 tokens in groups of 64 pass a third of the layers a step."""
    w = state(lanes=1, rules=rules(layer_group_tokens=64))
    w.step[0, [k.N_PROMPTS, k.N_NEW]] = [2.0, 130.0]
    _group_layers(w, 0)
    assert (w.lanes[0, [k.LAYERS_ALL, k.LAYERS_LEFT]].tolist(), w.rates[0, k.LAYERS_FRAC]) == ([3, 3], 1 / 3)
    lane_of(w, 0, layers_left=1)
    _group_layers(w, 0)
    assert (w.lanes[0, [k.LAYERS_ALL, k.LAYERS_LEFT]].tolist(), w.rates[0, k.LAYERS_FRAC]) == ([3, 1], 1 / 3)
    w.step[0, k.N_PROMPTS] = 0.0
    _group_layers(w, 0)
    assert (w.lanes[0, [k.LAYERS_ALL, k.LAYERS_LEFT]].tolist(), w.rates[0, k.LAYERS_FRAC]) == ([0, 0], 1.0)
