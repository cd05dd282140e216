"""Whatever is drawn: nothing is lost, nothing is left over, and the books balance."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from small_runs import check, digest, limits, play, prefixes, service_of, setting, traffic

from orrery.execution.memory import Infeasible
from orrery.serving.requests import Requests
from orrery.serving.simulation.tables import _kernel as k

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(**QUIET)
@given(setting(), limits(), traffic())
def test_books_balance_after_every_run(chosen, limits, requests):
    world, _ = play(service_of(**chosen), requests, **limits)
    check(requests, world)
    again, _ = play(service_of(**chosen), requests, **limits)
    assert digest(world) == digest(again)


@settings(max_examples=8, **QUIET)
@given(setting(), limits(), traffic(most=8))
def test_books_balance_after_a_few_runs(chosen, limits, requests):
    """As many as are quick where nothing is compiled."""
    world, _ = play(service_of(**chosen), requests, **limits)
    check(requests, world)


def some(inputs, outputs, **named):
    """Requests that all come at once."""
    inputs, outputs = np.array(inputs), np.array(outputs)
    return Requests(arrive_s=np.zeros(inputs.size), input_tokens=inputs, output_tokens=outputs, **named)


def test_what_can_never_fit_is_refused_and_the_rest_is_served():
    world, _ = play(service_of(), some([30, 300, 30], [10, 10, 10]), blocks=5)
    assert world.req[:, k.STATUS].tolist() == [k.DONE, k.REFUSED, k.DONE]
    check(some([30, 300, 30], [10, 10, 10]), world)


def test_where_nothing_fits_the_answer_says_so():
    _, result = play(service_of(), some([300], [10]), blocks=5)
    assert isinstance(result, Infeasible)
    assert "cache for the shortest request" in str(result)


def test_followers_of_a_refused_request_come_and_a_closed_loop_goes_on():
    requests = some([300, 30, 30, 30], [10] * 4, after=np.array([-1, 0, -1, -1]))
    world, _ = play(service_of(), requests, blocks=5, concurrency=1)
    assert (world.req[1:, k.STATUS] == k.DONE).all()
    arrived, finish = world.when[1:, k.ARRIVED_S], world.when[1:, k.FINISH]
    assert (arrived[1:] >= finish[:-1]).all(), "one at a time"


def test_a_closed_loop_of_conversations_never_exceeds_its_places():
    after = np.array([-1, 0, 1, -1, 3, -1, -1, 6])
    requests = some([20] * 8, [5, 9, 3, 8, 2, 7, 6, 4], after=after)
    world, _ = play(service_of(), requests, concurrency=2)
    at = np.sort(np.concatenate([world.when[:, k.ARRIVED_S], world.when[:, k.FINISH] - 1e-12]))
    in_flight = [((world.when[:, k.ARRIVED_S] <= t) & (world.when[:, k.FINISH] > t)).sum() for t in at]
    assert max(in_flight) == 2


def test_a_later_turn_finds_the_answer_before_it():
    start, ids = prefixes(np.array([64 + 33, 112]), np.zeros(2), np.array([9, 9]), 16)
    requests = some(
        [64, 112], [33, 4], after=np.array([-1, 0]), prefix_start=start, prefix_ids=ids, prefix_block_tokens=16
    )
    world, _ = play(service_of(), requests)
    assert world.req[1, k.CACHED] == 96, "64 tokens of the prompt and 32 of the answer"


def test_a_lane_that_waits_for_its_neighbours_cache_is_woken():
    requests = some([40, 40, 40, 40], [30, 30, 30, 30])
    for fleet in ("pipeline", "split"):
        world, _ = play(service_of(fleet=fleet), requests, blocks=5)
        check(requests, world)
        assert (world.req[:, k.STATUS] == k.DONE).all()
