"""Several models on one machine: steps in turn, or one awake at a time."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import check, deployment, digest, limits, plain_python, play, traffic

from orrery.base.errors import ScenarioError
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.tables import _kernel as k

QUIET = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
WAKE_S = 2.0


def service_of(sharing, turn_s=0.0, replicas=1, **named):
    """Twice the same model, as two: prices of steps are equal, so that sums can be made by hand."""
    host = Pool(deployment=deployment(), replicas=replicas, wake_s=WAKE_S)
    guest = Pool(deployment=replace(deployment()), replicas=replicas, host=0, wake_s=WAKE_S)
    return Service(pools=(host, guest), sharing=sharing, turn_s=turn_s, **named)


def one(outputs, model, arrive=None):
    count = len(outputs)
    return Requests(
        arrive_s=np.zeros(count) if arrive is None else np.array(arrive, dtype=float),
        input_tokens=np.full(count, 100),
        output_tokens=np.array(outputs),
        model=np.array(model),
    )


def alone(output):
    """A request alone: the moment at which it ends, and the length of its steps in all."""
    world, result = play(Service(pools=(Pool(deployment=deployment()),)), one([output], []))
    return float(result.finish_s[0]), float(world.totals[k.BUSY])


def test_two_models_take_their_steps_in_turn():
    """Each computes its own 50 steps, one after the other's: together as long as both alone, and the first ends one of
    its neighbour's steps before the second."""
    finish_s, busy_s = alone(50)
    entry_s = finish_s - busy_s
    world, result = play(service_of("time"), one([50, 50], [0, 1]))
    assert result.finish_s.max() == pytest.approx(entry_s + 2.0 * busy_s, rel=1e-12)
    assert result.finish_s[0] == pytest.approx(entry_s + 2.0 * busy_s - busy_s / 50, rel=1e-3)
    assert world.totals[k.BUSY] == pytest.approx(2.0 * busy_s, rel=1e-12)


def test_a_model_whose_neighbour_has_nothing_to_do_is_as_quick_as_alone():
    world, result = play(service_of("time"), one([50, 2], [0, 1], [0.0, 100.0]))
    assert result.finish_s[0] == alone(50)[0]
    assert world.totals[k.WAKES] == 0


def test_a_sleeping_model_waits_for_the_one_that_is_awake_and_for_its_weights():
    """The host's model is awake at the start. The guest's request waits until it has ended, then for the weights."""
    finish_s, busy_s = alone(50)
    world, result = play(service_of("sleep", turn_s=1e9), one([50, 50], [0, 1]))
    assert result.finish_s[0] == finish_s
    assert result.finish_s[1] == pytest.approx(finish_s + WAKE_S + busy_s, rel=1e-12)
    assert world.totals[k.WAKES] == 1


def test_the_turn_of_a_model_ends_where_others_wait():
    """The host's model gets a request every 0.1 s, each for longer than that; one of the guest's comes at 0.05 s. Where
    a turn is over at once it waits for the one under way; where it lasts, for all."""
    arrive_s = np.sort([*np.arange(10) * 0.1, 0.05])
    requests = one([20] * 11, (arrive_s == 0.05).astype(int), arrive_s)
    finish_s, busy_s = alone(20)
    assert finish_s > 0.1
    world, quick = play(service_of("sleep"), requests)
    assert quick.finish_s[0] == finish_s
    assert quick.finish_s[1] == pytest.approx(finish_s + WAKE_S + busy_s, rel=1e-12)
    assert world.totals[k.WAKES] == 2
    world, long = play(service_of("sleep", turn_s=1e9), requests)
    assert long.finish_s[1] == pytest.approx(np.delete(long.finish_s, 1).max() + WAKE_S + busy_s, rel=1e-12)
    assert world.totals[k.WAKES] == 1


@settings(max_examples=60, **QUIET)
@given(limits(), traffic(following=False), st.sampled_from(["time", "sleep"]), st.integers(1, 3), st.integers(0, 2**16))
def test_books_balance_whatever_comes(limits, requests, sharing, replicas, seed):
    model = np.random.default_rng(seed).integers(0, 2, requests.count)
    named = {"turn_s": 0.01, "replicas": replicas, "prefix_caching": True}
    requests = replace(requests, model=model)
    world, _ = play(service_of(sharing, **named), requests, **limits)
    check(requests, world)
    served = world.req[:, k.STATUS] == k.DONE
    assert (world.lanes[world.req[served, k.LANE], k.DEPLOYMENT] == model[served]).all()
    assert sharing == "sleep" or world.totals[k.WAKES] == 0


@settings(max_examples=10, **QUIET)
@given(limits(), traffic(most=8, following=False), st.sampled_from(["time", "sleep"]))
def test_compiled_and_plain_agree(limits, requests, sharing):
    requests = replace(requests, model=np.arange(requests.count) % 2)
    compiled, _ = play(service_of(sharing), requests, **limits)
    with ExitStack() as stack:
        for change in plain_python():
            stack.enter_context(change)
        stack.enter_context(np.errstate(over="ignore"))
        plain, _ = play(service_of(sharing), requests, **limits)
    assert digest(compiled) == digest(plain)


def test_machines_that_differ_are_refused():
    with pytest.raises(ScenarioError, match="as many devices"):
        Service(pools=(Pool(deployment=deployment()), Pool(deployment=deployment("pipeline"), host=0)), sharing="time")
    two = Pool(deployment=deployment(), replicas=2)
    with pytest.raises(ScenarioError, match="as many devices"):
        Service(pools=(two, Pool(deployment=deployment(), host=0)), sharing="time")
