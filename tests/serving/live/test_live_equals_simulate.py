"""A live run serves the same arrivals at the same moments as a simulation that knew them all before."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from playing import check_empty, play_live
from small_runs import limits, play, service_of, setting, traffic

from orrery.execution.memory import Infeasible
from orrery.serving.live.result import FINISHED, REFUSED
from orrery.serving.requests import Requests
from orrery.serving.simulation.tables import _kernel as k

QUIET = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def assert_equal(chosen, limits, requests, seed):
    service, limits = service_of(**chosen), {name: x for name, x in limits.items() if name != "concurrency"}
    world, result = play(service, requests, **limits)
    live, heard = play_live(service, requests, np.random.default_rng(seed), **limits)
    served = world.req[:, k.STATUS] == k.DONE
    for i in range(requests.count):
        assert heard.end[i] == (FINISHED if served[i] else REFUSED)
        if served[i]:
            assert heard.first[i] == world.when[i, k.FIRST]
            assert heard.ended_s[i] == world.when[i, k.FINISH]
            assert heard.tokens[i] == requests.output_tokens[i]
    now = live.snapshot()
    assert now.steps.sum() == world.totals[k.TOTAL_STEPS]
    assert now.preemptions.sum() == world.req[:, k.PREEMPTED].sum()
    assert now.prompt_tokens.sum() == requests.input_tokens[served].sum()
    assert now.answer_tokens.sum() == requests.output_tokens[served].sum()
    assert now.hit_tokens.sum() == world.req[served, k.CACHED].sum()
    assert now.queried_tokens.sum() == requests.input_tokens[served].sum()
    check_empty(live)
    if not isinstance(result, Infeasible):
        ttft_s = np.array([heard.first[i] for i in np.flatnonzero(served)]) - requests.arrive_s[served]
        np.testing.assert_allclose(ttft_s, (result.first_token_s - result.arrive_s)[served], atol=1e-9)


@settings(max_examples=50, **QUIET)
@given(setting(), limits(), traffic(following=False), st.integers(0, 2**32 - 1))
def test_every_moment_is_the_simulators(chosen, limits, requests, seed):
    assert_equal(chosen, limits, requests, seed)


@pytest.mark.slow
@settings(max_examples=3000, **QUIET)
@given(setting(), limits(), traffic(most=40, following=False), st.integers(0, 2**32 - 1))
def test_every_moment_is_the_simulators_over_many_runs(chosen, limits, requests, seed):
    assert_equal(chosen, limits, requests, seed)


def test_a_look_at_another_pool_sees_the_blocks_of_the_steps_that_have_ended_there():
    """A prompt stays where it was computed while the others' cache is full; their steps are booked several at once."""
    arrive_s = [39, 117, 195, 286, 286, 377, 390, 403, 468, 559, 611, 611, 689, 819, 832, 871, 910, 1014]
    count = len(arrive_s)
    requests = Requests(
        arrive_s=np.array(arrive_s) / 1000,
        input_tokens=np.array([36, 6, 34, 45, 53, 23, 24, 53, 6, 29, 11, 3, 54, 15, 58, 7, 46, 26]),
        output_tokens=np.array([39, 65, 8, 31, 66, 66, 6, 38, 25, 61, 29, 49, 19, 24, 51, 40, 21, 52]),
        client=np.zeros(count, dtype=np.int64),
        priority=np.zeros(count),
    )
    limits = {"blocks": 12, "spare_blocks": 1, "seats": 5, "budget": 100, "host_blocks": 0}
    chosen = {"fleet": "pools", "max_prefill_queue": 1, "compression": {"kept_tokens_frac": 0.4}}
    assert_equal(chosen, limits, requests, seed=0)


@settings(max_examples=20, **QUIET)
@given(traffic(following=False), st.integers(0, 2**32 - 1))
def test_the_router_draws_the_same_numbers(requests, seed):
    assert_equal({"fleet": "three", "router": "power-of-two"}, {"seats": 2}, requests, seed)
