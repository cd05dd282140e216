"""Rates that a replica of a fleet sustains, against single points of an open loop."""

import numpy as np
import pytest

from orrery.execution.memory import memory_of
from orrery.scenario.fleet.capacity import capacity_of
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.online import open_loop
from orrery.serving.requests import Requests

LENGTHS = 500, 100


@pytest.fixture(scope="module")
def pool():
    service, _ = service_for(read_scenario({"model": "llama-3.1-8b", "device": "h100-sxm"}))
    return service.pools[0]


def capacity(pool, **limits_s):
    requests = Requests(
        arrive_s=np.zeros(3),
        input_tokens=np.full(3, LENGTHS[0], dtype=np.int64),
        output_tokens=np.full(3, LENGTHS[1], dtype=np.int64),
    )
    return capacity_of((pool,), (pool.role,), requests, limits_s)


def at(pool, concurrency):
    deployment = pool.deployment
    return open_loop(deployment, memory_of(deployment), *LENGTHS, np.array([concurrency]))


def test_where_only_one_request_at_a_time_is_fast_enough_it_is_one(pool):
    alone = at(pool, 1.0)
    strict = capacity(pool, tpot=1.001 * float(alone.tpot_s[0]))
    assert strict == pytest.approx(float(alone.requests_per_s[0]), rel=1e-9)


def test_a_limit_is_met_and_hardly_more(pool):
    """Between the rates of 4 and of 16 requests at a time where TPOT may be that of 8."""
    four, eight, sixteen = (at(pool, n) for n in (4.0, 8.0, 16.0))
    found = capacity(pool, tpot=float(eight.tpot_s[0]))
    assert float(four.requests_per_s[0]) < found < float(sixteen.requests_per_s[0])
    assert found <= float(eight.requests_per_s[0]) * (1 + 1e-9)


def test_without_a_limit_that_can_be_met_the_highest_rate_counts(pool):
    assert capacity(pool, tpot=1e-9) == capacity(pool)
    assert capacity(pool) > float(at(pool, 16.0).requests_per_s[0])
