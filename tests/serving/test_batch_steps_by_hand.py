"""What a step holds: answers, prompts, and who may join, one function at a time."""

from small_state import LOAD, copied_s, decode, granted, lane_of, prefill, put, rules, state, waiting

from orrery.serving.simulation.admission._kernel import (
    schedule_lane,
)
from orrery.serving.simulation.tables import _kernel as k


def scheduled(w, grant=granted):
    return bool(schedule_lane(w, grant, copied_s, copied_s, 0, 2.0))


def answering(**switches):
    """Three answers of 50 tokens in all, 6 of which are elsewhere while 4 of others are here; one prompt of 40."""
    w = state(lanes=1, rules=rules(**switches))
    decode(w, 0, 0, 1, 2, context=50)
    lane_of(w, 0, far=6, guests=4, budget=30)
    put(w, 3, input=40, output=5)
    waiting(w, 0, 3)
    w.retained[0, k.KEPT] = 0.5
    return w


def test_a_mixed_step():
    """Answers take 3 x 2 of 30 tokens with a guess to check, the prompt 24; attention reads half of 51 tokens."""
    w = answering(mixes=True, checked_tokens=1)
    assert scheduled(w)
    assert w.step[0, LOAD].tolist() == [1.0, 24.0, 288.0, 3.0, 25.5, 3.0]


def test_prompts_go_first_and_alone():
    w = answering()
    assert scheduled(w)
    assert w.step[0, LOAD].tolist() == [1.0, 30.0, 450.0, 0.0, 0.0, 0.0]
    assert w.lanes[0, k.DECODES_NEXT] == 1
    put(w, 3, computed=40)
    w.step[0] = 0.0
    assert scheduled(w)
    assert w.step[0, LOAD].tolist() == [0.0, 0.0, 0.0, 3.0, 25.5, 0.0]
    assert w.lanes[0, k.DECODES_NEXT] == 0


def test_answers_and_prompts_in_turn():
    w = answering(alternates=True)
    lane_of(w, 0, decodes_next=1)
    assert scheduled(w)
    assert w.step[0, LOAD].tolist() == [0.0, 0.0, 0.0, 3.0, 25.5, 0.0]
    w.step[0] = 0.0
    assert scheduled(w)
    assert w.step[0, LOAD[:2]].tolist() == [1.0, 30.0]
    lane_of(w, 0, num_decoding=0)
    w.step[0] = 0.0
    put(w, 3, computed=30)
    assert scheduled(w)
    assert w.step[0, LOAD[:2]].tolist() == [1.0, 10.0]


def test_a_batch_that_waits_for_empty_admits_nobody_beside_it():
    w = answering(waits_for_empty=True)
    assert scheduled(w)
    assert w.step[0, k.N_PROMPTS] == 0.0
    lane_of(w, 0, num_decoding=0)
    w.step[0] = 0.0
    assert scheduled(w)
    assert w.step[0, k.N_PROMPTS] == 1.0


def test_layers_under_way_take_no_new_prompt():
    w = answering(mixes=True, layer_group_tokens=20)
    prefill(w, 0, 1, grants=(9,))
    lane_of(w, 0, layers_left=2, layers_all=4)
    assert scheduled(w)
    assert (w.lanes[0, k.NUM_PROMPTS], w.step[0, k.N_NEW], w.rates[0, k.LAYERS_FRAC]) == (1, 9.0, 0.25)


def test_nobody_is_admitted_where_somebody_was_thrown_out():
    w = answering(mixes=True)
    w.memory.free[0] = 0
    w.seats[0, k.SEAT_BLOCK_DUE, 0] = 1
    put(w, 2, output=9, turn=9, blocks=2)
    put(w, 0, input=90, output=90, computed=16, blocks=1)
    assert scheduled(w)
    assert (w.step[0, k.N_PROMPTS], w.step[0, k.N_DECODES], w.lanes[0, k.NUM_WAITING]) == (0.0, 2.0, 2)


def test_those_that_are_ready_join_and_an_idle_lane_has_nothing():
    w = state(lanes=1, rules=rules(mixes=True))
    assert not scheduled(w)
    lane_of(w, 0, num_ready=2, reserved=2)
    w.seats[0, k.SEAT_READY, :2] = [2, 3]
    for i in (2, 3):
        put(w, i, input=20, output=9, made=1, computed=20, blocks=2)
    assert scheduled(w)
    assert w.lanes[0, [k.NUM_READY, k.RESERVED, k.NUM_DECODING]].tolist() == [0, 0, 2]
    assert w.step[0, k.N_CONTEXT] == 42.0


def test_an_answer_that_comes_back_at_a_blocks_end_gets_the_next_one():
    w = state(lanes=1, rules=rules(mixes=True, draft_levels=1))
    put(w, 0, input=20, output=90, made=3, computed=31, lane=0)
    waiting(w, 0, 0)
    put(w, 0, status=k.SWAPPED)
    assert scheduled(w)
    assert (w.req[0, k.BLOCKS], w.seats[0, k.SEAT_BLOCK_DUE, 0]) == (3, 2)


def test_lent_tokens_are_looked_for_in_a_step():
    w = state(rules=rules(mixes=True), lending_s=0.0)
    decode(w, 0, 0, context=60)
    put(w, 0, input=70, output=90, lender=1, lent=2, blocks=5, computed=60)
    assert scheduled(w)
    assert (w.lanes[0, k.FAR], w.lanes[1, k.GUESTS], w.step[0, k.N_CONTEXT]) == (13, 13, 48.0)
