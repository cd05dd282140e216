"""What a step that has ended brings, one function at a time: tokens, ends, hand-overs, books."""

import numpy as np
import pytest
from small_state import decode, lane_of, prefill, put, rules, state

from orrery.serving.simulation.step_results._kernel import (
    _accept,
    _drop,
    _emit,
    _end_seats,
    _gap,
    _is_sent_on,
    _stays,
    _uniform,
    book_decodes,
    book_prompts,
    end_batch,
    exit_lane,
    has_others,
    note_step,
    steer_split,
    wake_lane,
    wake_others,
)
from orrery.serving.simulation.tables import _kernel as k


def one_prompt(w, lane=0, **columns):
    """A request whose prompt of 30 tokens has just been computed; it holds two blocks."""
    put(w, 1, lane=lane, input=30, output=9, computed=30, blocks=2, **columns)
    w.memory.free[lane] -= 20
    w.rates[lane, [k.LOAD_REQUESTS, k.LOAD_TOKENS]] = [1.0, 39.0]


def test_a_first_token_is_out():
    w = state(rules=rules(reports=True))
    one_prompt(w)
    _emit(w, 0, 1, 0, 2.5)
    assert w.when[1, [k.FIRST, k.LAST]].tolist() == [2.5, 2.5]
    assert (w.req[1, k.MADE], w.req[1, k.STATUS], w.lanes[0, k.NUM_DECODING]) == (1, k.DECODING, 1)
    assert (w.rates[0, k.LOAD_TOKENS], w.totals[k.GAP_SUM]) == (8.0, 0.0)
    assert w.tally[0, [k.T_PROMPTED, k.T_ANSWERED]].tolist() == [30, 1]
    assert w.emitted[0].tolist() == [1, 1, 0]


def test_a_prompt_that_was_computed_again_brings_its_next_token():
    w = state()
    one_prompt(w, made=4)
    w.when[1, [k.FIRST, k.LAST]] = [0.5, 1.0]
    _emit(w, 0, 1, 0, 2.5)
    assert w.when[1, [k.FIRST, k.LAST]].tolist() == [0.5, 2.5]
    assert (w.req[1, k.MADE], w.totals[k.GAP_SUM], w.totals[k.GAP_SQUARES]) == (5, 1.5, 2.25)
    assert (w.rates[0, k.LOAD_TOKENS], w.tally[0, k.T_PROMPTED]) == (38.0, 0)


def test_an_answer_of_one_token_ends_with_its_prompt_or_waits_for_its_batch():
    for holds, status in ((False, k.DONE), (True, k.DECODING)):
        w = state(rules=rules(holds_batch=holds))
        one_prompt(w)
        put(w, 1, output=1)
        _emit(w, 0, 1, 0, 2.5)
        assert w.req[1, k.STATUS] == status


def test_a_prompt_that_nobody_takes_over_fails():
    w = state()
    lane_of(w, 0, role=k.PROMPTS)
    one_prompt(w)
    _emit(w, -1, 1, 0, 2.5)
    assert (w.req[1, k.STATUS], w.req[1, k.BLOCKS], w.memory.free[0], w.counts[k.SERVED]) == (k.FAILED, 0, 100, 1)
    assert w.rates[0, [k.LOAD_REQUESTS, k.LOAD_TOKENS]].tolist() == [0.0, 0.0]


def test_a_cache_is_held_until_the_other_lane_takes_it():
    w = state(rules=rules(reports=True))
    lane_of(w, 0, role=k.PROMPTS)
    one_prompt(w, lender=3, lent=1, shared=1)
    _emit(w, 1, 1, 0, 2.5)
    assert w.req[1, [k.STATUS, k.SOURCE, k.LANE]].tolist() == [k.WAITING, 0, 1]
    assert w.req[1, [k.SOURCE_BLOCKS, k.SOURCE_SHARED, k.SOURCE_LENDER, k.SOURCE_LENT]].tolist() == [2, 1, 3, 1]
    assert w.req[1, [k.BLOCKS, k.SHARED, k.LENDER, k.LENT]].tolist() == [0, 0, -1, 0]
    assert w.rates[:2, [k.LOAD_REQUESTS, k.LOAD_TOKENS]].tolist() == [[0.0, 0.0], [1.0, 8.0]]
    assert (w.lanes[1, k.NUM_WAITING], w.memory.free[0], w.counts[k.EMITTED]) == (1, 80, 0)


def test_a_cache_stays_where_both_lanes_use_one_pool():
    w = state(rules=rules(reports=True), places=1)
    lane_of(w, 0, role=k.PROMPTS)
    lane_of(w, 1, pool=0)
    one_prompt(w, adapter=0)
    _emit(w, 1, 1, 0, 2.5)
    assert w.req[1, [k.STATUS, k.SOURCE, k.BLOCKS]].tolist() == [k.MOVING, -1, 2]
    assert w.lanes[1, [k.RESERVED, k.NUM_READY, k.NUM_WAITING]].tolist() == [1, 1, 0]
    assert (w.seats[1, k.SEAT_READY, 0], w.slots[0, k.SLOT_REQUESTS, 0], w.counts[k.EMITTED]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("change", "is_sent"),
    [
        ({}, True),
        ({"made": 2}, False),
        ({"output": 1}, False),
        ({"target": -1}, False),
        ({"role": k.BOTH}, False),
        ({"streams": True}, False),
        ({"pool": 0}, False),
        ({"output": 2}, True),
    ],
)
def test_first_tokens_that_come_with_their_cache(change, is_sent):
    w = state(rules=rules(prompts_stream_first=change.get("streams", False)))
    lane_of(w, 0, role=change.get("role", k.PROMPTS))
    lane_of(w, 1, pool=change.get("pool", 1))
    put(w, 1, made=change.get("made", 1), output=change.get("output", 9))
    assert bool(_is_sent_on(w, change.get("target", 1), 1, 0)) == is_sent


def test_the_lane_with_fewest_tokens_to_come_takes_over():
    w = state(lanes=5, exit=np.array([2, 3, 4]))
    lane_of(w, 0, role=k.PROMPTS)
    lane_of(w, 1, role=k.PROMPTS, twin=4)
    w.rates[:, k.LOAD_TOKENS] = [0.0, 0.0, 50.0, 40.0, 40.0]
    put(w, 0, input=100, output=40)
    assert [exit_lane(w, lane, 0, 0.0) for lane in (0, 1, 2)] == [3, 4, 2]
    lane_of(w, 3, pooled=80)  # 140 tokens are 9 blocks
    assert exit_lane(w, 0, 0, 0.0) == 4
    for lane in (2, 4):
        lane_of(w, lane, pooled=80)
    assert exit_lane(w, 0, 0, 0.0) == -1


@pytest.mark.parametrize(
    ("queue", "free", "seats", "blocks", "stays"),
    [(0, 10, 8, 10, False), (1, 30, 8, 10, False), (1, 29, 8, 10, True), (1, 30, 0, 10, True), (1, 10, 8, 2, False)],
)
def test_an_answer_stays_where_its_prompt_was_where_no_place_is_free(queue, free, seats, blocks, stays):
    """33 tokens and the next one take 3 blocks of 10 bytes there; 30 and 9 take 3 here, which has to hold so many."""
    w = state(exit=np.array([1]), rules=rules(prefill_queue=queue))
    lane_of(w, 0, role=k.PROMPTS, pooled=10 * blocks)
    lane_of(w, 1, max_seqs=seats)
    w.memory.free[1] = free
    put(w, 0, input=30, output=9, made=1, computed=33)
    assert bool(_stays(w, 0, 0, 1, 0.0)) == stays
    assert not _stays(w, 0, 0, -1, 0.0)


def test_granted_tokens_are_booked():
    """The first prompt has 10 of 30 tokens to go, the second is through, the third was granted nothing."""
    w = state()
    prefill(w, 0, 0, 1, 2, grants=(20, 10, 0))
    for i, computed in enumerate((0, 20, 5)):
        put(w, i, input=30, output=9, computed=computed, blocks=2)
    book_prompts(w, 0, 2.5)
    assert w.seats[0, k.SEAT_PROMPTS, :2].tolist() == [0, 2]
    assert w.req[:3, k.COMPUTED].tolist() == [20, 30, 5]
    assert w.req[:3, k.MADE].tolist() == [0, 1, 0]


def test_prompts_that_pass_layers_are_booked_with_the_last_group():
    w = state()
    prefill(w, 0, 0, grants=(30,))
    put(w, 0, input=30, output=9, blocks=2)
    lane_of(w, 0, layers_left=2, layers_all=5)
    book_prompts(w, 0, 2.5)
    assert (w.lanes[0, k.LAYERS_LEFT], w.req[0, k.COMPUTED]) == (1, 0)
    book_prompts(w, 0, 3.5)
    assert w.lanes[0, [k.LAYERS_LEFT, k.LAYERS_ALL]].tolist() == [0, 0]
    assert (w.req[0, k.COMPUTED], w.when[0, k.FIRST]) == (30, 3.5)


def test_whoever_takes_over_is_woken():
    w = state(exit=np.array([1]))
    lane_of(w, 0, role=k.PROMPTS)
    prefill(w, 0, 0, grants=(30,))
    put(w, 0, input=30, output=9, blocks=2)
    book_prompts(w, 0, 2.5)
    assert w.moments.tolist() == [np.inf, 2.5]


@pytest.mark.parametrize(
    ("dropped", "lent", "blocks", "lent_after", "free"),
    [
        (40, 0, 4, 0, [80, 60]),
        (40, 4, 4, 2, [60, 80]),
        (75, 4, 2, 0, [60, 100]),
        (75, 0, 2, 0, [100, 60]),
        (100, 0, 1, 0, [110, 60]),
    ],
)
def test_tokens_that_compression_drops(dropped, lent, blocks, lent_after, free):
    """100 tokens in 6 of 7 blocks (one more is not needed): 40 fewer leave 4 blocks, 75 fewer 2; borrowed ones go
    first."""
    w = state()
    w.memory.free[:] = 60
    put(w, 0, lane=0, input=100, output=9, computed=100, blocks=6, dropped=dropped, lender=1 if lent else -1, lent=lent)
    _drop(w, 0)
    assert w.req[0, [k.COMPUTED, k.BLOCKS, k.LENT]].tolist() == [100 - dropped, blocks, lent_after]
    assert w.req[0, k.LENDER] == (1 if lent_after else -1)
    assert w.memory.free.tolist() == free


def test_what_an_answer_was_promised_stays():
    """100 + 28 - 40 tokens are reserved: 6 of 8 blocks."""
    w = state(rules=rules(reserves_output=True))
    w.memory.free[0] = 20
    put(w, 0, lane=0, input=100, output=28, computed=100, blocks=8, dropped=40)
    _drop(w, 0)
    assert (w.req[0, k.BLOCKS], w.memory.free[0]) == (6, 40)


def test_a_histogram_of_gaps():
    """A thousand bins a decade from a microsecond on: 1 ms is bin 3000."""
    w = state()
    for gap_s, weight in ((1.001e-3, 2.0), (1e-9, 1.0), (1e9, 3.0)):
        _gap(w, gap_s, weight)
    assert np.flatnonzero(w.gaps).tolist() == [0, 3000, 7999]
    assert w.gaps[[0, 3000, 7999]].tolist() == [1.0, 2.0, 3.0]
    w = state()
    _gap(w, 2.0, 3.0)
    assert (w.totals[k.GAP_SUM], w.totals[k.GAP_SQUARES]) == (6.0, 12.0)


def test_every_answer_has_a_token_more():
    """Three answers, the last of which came since the step before: two gaps of 1.5 s, and one of 0.5 s."""
    w = state(rules=rules(reports=True))
    decode(w, 0, 0, 1, 2, context=90)
    lane_of(w, 0, steps=6, num_fresh=1, next_end=9)
    w.seats[0, k.SEAT_FRESH, 0] = 2
    w.when[2, k.LAST], w.rates[0, [k.DECODED_S, k.LOAD_TOKENS]] = 2.0, [1.0, 20.0]
    book_decodes(w, 0, 2.5)
    assert w.lanes[0, [k.STEPS, k.CONTEXT, k.NUM_FRESH]].tolist() == [7, 93, 0]
    assert (w.totals[k.GAP_SUM], w.gaps.sum()) == (3.5, 3.0)
    assert (w.rates[0, k.DECODED_S], w.rates[0, k.LOAD_TOKENS], w.tally[0, k.T_ANSWERED]) == (2.5, 17.0, 3)
    assert w.emitted[:3].tolist() == [[0, 1, 0], [1, 1, 0], [2, 1, 0]]
    assert (w.step[0, k.N_DECODES], w.counts[k.EMITTED]) == (3.0, 3)


def test_complete_answers_leave():
    """At step 7 the first and the third of four end; the next one does at 9."""
    w = state(lanes=1)
    decode(w, 0, 0, 1, 2, 3, context=100)
    lane_of(w, 0, steps=6, next_end=7)
    w.seats[0, k.SEAT_END_DUE, :4] = [7, 12, 7, 9]
    for i in range(4):
        put(w, i, output=5, computed=10, made=1, joined=3)
    book_decodes(w, 0, 2.5)
    assert w.req[:4, k.STATUS].tolist() == [k.DONE, k.DECODING, k.DONE, k.DECODING]
    assert w.lanes[0, [k.NUM_DECODING, k.NEXT_END, k.CONTEXT]].tolist() == [2, 9, 104 - 28]
    lane_of(w, 0, steps=8)
    book_decodes(w, 0, 3.5)
    assert w.req[3, k.STATUS] == k.DONE
    assert w.lanes[0, k.NEXT_END] == 12
    _end_seats(w, 0, 3.5)
    assert w.lanes[0, k.NUM_DECODING] == 1


def held_batch():
    """At step 7 of a batch that stays together: one answer is complete since step 5, one at 7, one at 9."""
    w = state(lanes=1, rules=rules(holds_batch=True, reports=True))
    decode(w, 0, 0, 1, 2, context=90)
    lane_of(w, 0, steps=6, next_end=5)
    w.seats[0, k.SEAT_END_DUE, :3] = [5, 7, 9]
    w.rates[0, [k.LOAD_REQUESTS, k.LOAD_TOKENS]] = [3.0, 4.0]
    for i in range(3):
        put(w, i, output=5, computed=10, made=1, joined=3, blocks=1)
    return w


def test_seats_of_complete_answers_are_padding():
    """Of three seats one still makes a token that counts after step 7; the one that ends there is told of its last."""
    w = held_batch()
    book_decodes(w, 0, 2.5)
    assert (w.rates[0, k.ANSWER_PADDING], w.rates[0, k.LOAD_TOKENS], w.tally[0, k.T_ANSWERED]) == (1.0, 2.0, 2)
    assert (w.lanes[0, k.NUM_DECODING], w.gaps.sum()) == (3, 2.0)
    assert w.emitted[: w.counts[k.EMITTED], k.E_NUMBER].tolist() == [1, 2]


def test_a_batch_ends_with_its_last_answer():
    for together, finished in ((False, [k.DONE, k.DONE, k.DECODING]), (True, [k.DECODING] * 3)):
        w = held_batch()
        w.rules = rules(holds_batch=True, returns_together=together)
        lane_of(w, 0, steps=7)
        end_batch(w, 0, 2.5)
        assert w.req[:3, k.STATUS].tolist() == finished
        assert w.lanes[0, k.NUM_DECODING] == 3
        lane_of(w, 0, steps=9, num_prompts=1)
        end_batch(w, 0, 4.5)
        assert w.lanes[0, k.NUM_DECODING] == 3
        lane_of(w, 0, num_prompts=0)
        end_batch(w, 0, 5.5)
        assert w.lanes[0, k.NUM_DECODING] == 0
        assert w.when[:3, k.FINISH].tolist() == ([5.5] * 3 if together else [2.5, 2.5, 4.5])
        assert (w.counts[k.SERVED], w.memory.free[0]) == (3, 130)


def drafting(chance, outputs=(20, 20)):
    """Two answers at the lane's step 5, the fourth since they joined with one token."""
    w = state(lanes=1, rules=rules(draft_levels=3, checked_tokens=4, reports=True))
    decode(w, 0, 0, 1, context=100)
    w.knobs[k.ACCEPT, :3] = chance
    lane_of(w, 0, steps=5)
    for i, output in enumerate(outputs):
        put(w, i, output=output, made=1, joined=1, computed=40)
    return w


def accepted(w):
    with np.errstate(over="ignore"):
        _accept(w, 0, 2.5)
    return w


def test_guesses_are_accepted_until_one_fails():
    w = accepted(drafting([1.0, 1.0, 0.0]))
    assert w.req[:2, k.MADE].tolist() == [3, 3]
    assert w.req[:2, k.COMPUTED].tolist() == [42, 42]
    assert (w.lanes[0, k.CONTEXT], w.rates[0, k.LOAD_TOKENS], w.tally[0, k.T_ANSWERED]) == (104, -4.0, 4)
    assert (w.totals[k.ACCEPTED], w.totals[k.DRAFTED], w.timeline[2, k.B_DECODE]) == (4.0, 8.0, 4.0)
    assert w.emitted[:2].tolist() == [[0, 3, 0], [1, 3, 0]]
    assert w.lanes[0, k.NEXT_END] == 5
    assert w.seats[0, k.SEAT_END_DUE, :2].tolist() == [k.NEVER, k.NEVER]


def test_guesses_end_with_the_answer():
    """Five tokens are made: of 7 two are to come, of 5 none; one that was complete before is not looked at."""
    w = drafting([1.0, 1.0, 1.0], (7, 5))
    accepted(w)
    assert w.req[:2, k.MADE].tolist() == [3, 1]
    assert w.seats[0, k.SEAT_END_DUE, :2].tolist() == [5, 5]
    w = drafting([1.0, 1.0, 1.0])
    w.seats[0, k.SEAT_END_DUE, 0] = 4
    accepted(w)
    assert w.req[:2, k.MADE].tolist() == [1, 4]


def test_a_guess_holds_where_its_number_is_below_the_chance():
    with np.errstate(over="ignore"):
        first = [_uniform(0, 5), _uniform(1, 5)]
    below = accepted(drafting([np.nextafter(first[0], 1.0), 0.0, 0.0]))
    at = accepted(drafting([first[0], 0.0, 0.0]))
    assert (below.req[0, k.MADE], at.req[0, k.MADE]) == (2, 1)
    assert below.req[1, k.MADE] == 1 + (first[1] <= first[0])


def test_numbers_of_tokens_are_those_of_splitmix():
    """The finisher on whole numbers of 64 bits, in Python's own."""
    for i, token in ((0, 0), (1, 5), (123, 4567)):
        x = (i * 0x9E3779B97F4A7C15 + token * 0xD1B54A32D192ED03) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        x ^= x >> 31
        with np.errstate(over="ignore"):
            assert _uniform(i, token) == (x >> 11) / 2**53


def test_a_step_in_the_books():
    """Two lanes of a unit, from 0.5 to 2.5 s: 40 prompt tokens, 10 of them padding, through half of the layers; 7
    decodes, of which two are padding."""
    w = state(unit_lane=np.array([0, 2]), unit_machine=np.array([6]), log=np.zeros((3, 9)))
    w.step[0, [k.N_PROMPTS, k.N_NEW, k.N_DECODES]] = [2.0, 40.0, 5.0]
    w.step[1, k.N_DECODES] = 2.0
    w.rates[0, [k.PROMPT_PADDING, k.ANSWER_PADDING, k.LAYERS_FRAC]] = [10.0, 2.0, 0.5]
    w.units[0, k.SPENT], w.totals[[k.WINDOW_START, k.WINDOW_END]] = 8.0, [0.5, 2.5]
    lane_of(w, 0, num_waiting=3)
    w.memory.free[0], w.memory.evictable[0] = 60, 10
    note_step(w, 0, 0.5, 2.5)
    row = w.timeline[2]
    assert row[[k.B_STEPS, k.B_PROMPT, k.B_DECODE, k.B_PADDED, k.B_ENERGY]].tolist() == [1.0, 15.0, 5.0, 12.0, 8.0]
    assert w.timeline[:3, k.B_BUSY].tolist() == [0.5, 1.0, 0.5]
    sums = [k.PROMPTED, k.PADDED, k.ENERGY, k.TOTAL_STEPS, k.BUSY, k.LOGGED]
    assert w.totals[sums].tolist() == [15.0, 12.0, 8.0, 1.0, 2.0, 2.0]
    assert w.log[:2].tolist() == [
        [6.0, 0.5, 2.5, 15.0, 3.0, 2.0, 5.0, 3.0, 30.0],
        [6.0, 0.5, 2.5, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0],
    ]
    assert (w.tally[0, k.T_STEPS], w.tally[1, k.T_STEPS]) == (1, 0)
    assert w.rates[0, [k.BUSY_S, k.SPENT_J]].tolist() == [2.0, 8.0]
    note_step(w, 0, 0.5, 9.0)  # beyond the window and the eight bins
    assert (w.totals[k.LOGGED], w.totals[k.WIDTH], w.timeline[4, k.B_STEPS]) == (2.0, 2.0, 1.0)
    note_step(w, 0, 0.4, 2.5)
    assert w.totals[k.LOGGED] == 2.0
    note_step(w, 0, 1.0, 2.0)
    assert w.totals[k.LOGGED] == 3.0  # there was a row for one of two lanes


def test_an_idle_unit_is_woken():
    w = state(lanes=3)
    w.units[1, k.BEGAN] = 1.0
    w.moments[:3] = [5.0, 5.0, 1.5]
    for lane in range(3):
        wake_lane(w, lane, 2.0)
    assert w.moments[:3].tolist() == [2.0, 5.0, 1.5]


def test_units_of_a_machine_share_its_pools():
    w = state(lanes=4, unit_machine=np.array([0, 1, 1, 2]))
    assert [bool(has_others(w, unit)) for unit in range(4)] == [False, True, True, False]
    w.lending_s = 0.0
    assert all(has_others(w, unit) for unit in range(4))


def test_others_that_wait_for_the_same_pool_look_again():
    for lending_s, woken in ((-1.0, [1]), (0.0, [0, 1, 4])):
        w = state(lanes=5, unit_machine=np.array([0, 1, 1, 1, 2]), lending_s=lending_s)
        for lane in (0, 1, 2, 4):
            lane_of(w, lane, num_waiting=1)
        wake_others(w, 2, 3.0)
        assert np.flatnonzero(np.isfinite(w.moments[:5])).tolist() == woken


@pytest.mark.parametrize(
    ("step_s", "waiting", "prompts", "before", "after"),
    [
        (0.11, 0, 0, 0, 1),
        (0.11, 0, 0, 2, 2),
        (0.1, 1, 0, 1, 1),
        (0.084, 1, 0, 1, 0),
        (0.084, 0, 1, 1, 0),
        (0.084, 0, 0, 1, 1),
        (0.084, 1, 0, 0, 0),
        (0.086, 1, 0, 1, 1),
        (0.09, 1, 1, 2, 2),
    ],
)
def test_a_split_follows_its_target(step_s, waiting, prompts, before, after):
    """Three splits and a target of 0.1 s; back below 0.085 s, where prompts wait or are under way."""
    w = state(rules=rules(target_s=0.1), unit_machine=np.array([0, 0]), num_variants=6)
    lane_of(w, 0, role=k.PROMPTS, twin=1, num_waiting=waiting, num_prompts=prompts)
    lane_of(w, 1, role=k.ANSWERS, twin=0)
    w.machines[0, k.SPLIT] = before
    steer_split(w, 0, step_s)  # the prompts' part steers nothing
    assert w.machines[0, k.SPLIT] == before
    steer_split(w, 1, step_s)
    assert w.machines[0, k.SPLIT] == after
