"""Steps that are planned ahead: the same run as step by step, and quicker."""

import time
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from small_runs import limits, play, service_of, setting, traffic

from orrery.serving.requests import Requests
from orrery.serving.simulation import world as building
from orrery.serving.simulation.ahead._kernel import tokens_to_come
from orrery.serving.simulation.tables import _kernel as k

QUIET = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def step_by_step(service, requests, **named):
    with patch.object(building, "_max_ahead", lambda prepared, lanes, window: np.zeros(len(lanes), dtype=np.int64)):
        return play(service, requests, **named)[0]


def held_equal(ahead, slow):
    """Every request's course to the bit; what is added up over steps to rounding."""
    for name in ("when", "number", "seats"):
        np.testing.assert_array_equal(getattr(ahead, name), getattr(slow, name))
    columns = [c for c in range(len(k.REQUEST)) if c != k.TURN]
    np.testing.assert_array_equal(ahead.req[:, columns], slow.req[:, columns])
    np.testing.assert_array_equal(ahead.tally, slow.tally)
    np.testing.assert_array_equal(ahead.gaps, slow.gaps)
    for name in ("totals", "timeline", "rates"):
        fast, plain = getattr(ahead, name), getattr(slow, name)
        np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(plain).max())))


@settings(max_examples=60, **QUIET)
@given(setting(), limits(), traffic())
def test_a_run_is_the_same_as_step_by_step(chosen, limits, requests):
    ahead, _ = play(service_of(**chosen), requests, **limits)
    held_equal(ahead, step_by_step(service_of(**chosen), requests, **limits))


def long_answers(count=400, seed=1, output=200, rate=15.0):
    draws = np.random.default_rng(seed)
    return Requests(
        arrive_s=np.cumsum(draws.standard_exponential(count)) / rate,
        input_tokens=draws.integers(200, 1500, count),
        output_tokens=draws.integers(output // 2, 2 * output, count),
    )


@pytest.mark.parametrize("router", ["least-loaded", "power-of-two", "kv-cost"])
@pytest.mark.parametrize("fleet", ["one", "three", "pools"])
def test_long_answers_are_the_same_as_step_by_step(fleet, router):
    """Routers that read how many tokens are to come read them as of the moment, in the middle of a plan."""
    service = service_of(fleet=fleet, router=router)
    held_equal(play(service, long_answers())[0], step_by_step(service, long_answers()))


def test_an_answer_alone_is_planned_to_its_end():
    """A prompt of 100 and an answer of 3 x 16 + 1: the clock turns for the prompt and for a plan after another, and the
    steps in between are those of the answer: 48 gaps."""
    one = Requests(arrive_s=np.zeros(1), input_tokens=np.array([100]), output_tokens=np.array([49]))
    world, result = play(service_of(), one)
    assert world.totals[k.TOTAL_STEPS] == 49
    assert world.gaps.sum() == 48
    assert result.finish_s[0] - result.first_token_s[0] == pytest.approx(world.totals[k.GAP_SUM], rel=1e-12)


def test_tokens_to_come_by_hand():
    """Three sequences have 90 tokens to come; two of the four planned steps have ended by 2.5 s: six tokens fewer. A
    step that ends now has not ended yet, as arrivals go first."""
    world, _ = play(service_of(), long_answers(3))
    world.rates[0, k.LOAD_TOKENS], world.lanes[0, k.NUM_DECODING] = 90.0, 3
    world.lanes[0, [k.AHEAD, k.ENDED]] = 4, 0
    world.ahead[0, k.AHEAD_END_S, :5] = 1.0, 2.0, 3.0, 4.0, 5.0
    assert tokens_to_come(world, 0, 2.5) == 84.0
    assert tokens_to_come(world, 0, 3.0) == 84.0
    assert tokens_to_come(world, 0, 9.0) == 78.0  # the last one is booked as any other is
    world.lanes[0, k.AHEAD] = 0
    assert tokens_to_come(world, 0, 9.0) == 90.0


def test_long_answers_take_less_time_than_step_by_step():
    """In one process, the best of three each: a third less (in fact about half)."""
    service, requests = service_of(fleet="three"), long_answers(3000, output=300, rate=4.0)

    def best_s(run):
        found = []
        for _ in range(3):
            start = time.process_time()
            run(service, requests)
            found.append(time.process_time() - start)
        return min(found)

    play(service, requests)  # its tables are built once
    assert best_s(play) < best_s(step_by_step) / 1.5
