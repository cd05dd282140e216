"""Models that sleep while another is awake, one function at a time."""

import numpy as np
import pytest
from small_state import lane_of, rules, state, waiting

from orrery.serving.simulation.sleeping._kernel import must_yield, wake_model
from orrery.serving.simulation.tables import _kernel as k


def shared(**given):
    """Models 0 and 1 on the first machine, where 0 is awake, and model 0 again on a second one; 30 bytes of each
    cache may be evicted."""
    w = state(lanes=3, unit_machine=np.array([0, 0, 1]), **given)
    w.lanes[:, k.DEPLOYMENT] = 0, 1, 0
    w.machines[:, k.SHARING], w.machines[:, k.AWAKE] = k.BY_SLEEP, 0
    w.memory.free[:], w.memory.evictable[:] = 70, 30
    w.rates[:, k.WAKE_S], w.step[:, k.N_DELAY_S] = 4.0, 1.0
    return w


def test_the_model_that_is_awake_goes_on():
    w = shared()
    assert wake_model(w, 0, 9.0)
    assert wake_model(w, 2, 9.0)
    assert w.totals[k.WAKES] == 0


def test_a_model_wakes_and_the_cache_of_the_other_is_empty():
    """Of that machine alone; its next step waits for 4 s more."""
    w = shared()
    waiting(w, 1, 0)
    assert wake_model(w, 1, 9.0)
    assert w.machines[:, k.AWAKE].tolist() == [1, 0, 0]
    assert w.memory.evictable.tolist() == [0, 30, 30]
    assert w.memory.free.tolist() == [100, 70, 70]
    assert w.step[:, k.N_DELAY_S].tolist() == [1.0, 5.0, 1.0]
    assert w.rates[:, k.AWAKE_S].tolist() == [0.0, 9.0, 0.0]
    assert w.totals[k.WAKES] == 1.0


def test_nobody_who_waits_wakes_no_model():
    assert not wake_model(shared(), 1, 9.0)


@pytest.mark.parametrize(
    "under_way",
    [
        {"num_decoding": 1},
        {"num_prompts": 1},
        {"reserved": 1},
        {"num_ready": 1},
        {"num_decoding": 1, "num_prompts": 1},
        {"reserved": 1, "num_ready": 1},
        {"num_decoding": 1, "reserved": 1},
    ],
)
@pytest.mark.parametrize(("lane", "wakes"), [(0, False), (1, False), (2, True)])
def test_a_model_sleeps_on_while_a_request_is_under_way_on_its_machine(lane, wakes, under_way):
    w = shared()
    waiting(w, 1, 0)
    lane_of(w, lane, **under_way)
    assert wake_model(w, 1, 9.0) is wakes


@pytest.mark.parametrize(
    ("turn_s", "since_s", "yields"), [(4.0, 5.0, True), (4.0, 6.0, False), (0.0, 8.5, True), (0.0, 9.0, False)]
)
def test_a_turn_ends_where_others_wait(turn_s, since_s, yields):
    """At 9 s; a model that has just woken takes a request in any case. A turn of just its length has ended."""
    w = shared(rules=rules(turn_s=turn_s))
    w.rates[0, k.AWAKE_S] = since_s
    assert not must_yield(w, 0, 9.0)
    waiting(w, 1, 0)
    assert bool(must_yield(w, 0, 9.0)) is yields


def test_a_turn_of_just_its_length_and_a_second_that_is_no_turn():
    w = shared(rules=rules(turn_s=0.5))
    waiting(w, 1, 0)
    for since_s, yields in ((8.5, True), (8.0, True), (8.75, False)):
        w.rates[0, k.AWAKE_S] = since_s
        assert bool(must_yield(w, 0, 9.0)) is yields


def test_no_turn_ends_for_oneself_or_for_another_machine_or_where_models_take_steps_in_turn():
    w = shared(rules=rules(turn_s=1.0))
    waiting(w, 0, 0)
    waiting(w, 2, 1)
    assert not must_yield(w, 0, 9.0)
    waiting(w, 1, 2)
    assert must_yield(w, 0, 9.0)
    w.machines[0, k.SHARING] = k.BY_STEP
    assert not must_yield(w, 0, 9.0)
