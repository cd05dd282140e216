"""Steady states obey Little's law, and waiting grows the way queues do."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.online import at_rate, sweep
from orrery.serving.steady import batch_limit, steady
from orrery.serving.workload import Workload

LADDER = np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256, 1024])


@pytest.fixture
def served(deploy):
    deployment = deploy(tp=4)
    memory = memory_of(deployment)
    assert isinstance(memory, Memory)
    return deployment, memory


@pytest.fixture
def seated(served):
    """The same with fewer seats than the cache has room for."""
    deployment, memory = served
    return deployment, replace(memory, max_num_seqs=300)


def test_littles_law_holds_at_every_concurrency(served):
    state = steady(*served, 1000, 200, LADDER)
    life_s = state.queue_s + state.prefill_s + 199 * state.tpot_s
    np.testing.assert_allclose(state.requests_per_s * life_s, LADDER, rtol=0.02)


def test_more_in_flight_is_more_throughput_and_slower_tokens(seated):
    points = sweep(*seated, 1000, 200, LADDER)
    assert (np.diff(points.output_tokens_per_s) > -0.02 * points.output_tokens_per_s[:-1]).all()
    assert (np.diff(points.tpot_s) > -0.02 * points.tpot_s[:-1]).all()
    assert (np.diff(points.ttft_s) > -0.02 * points.ttft_s[:-1]).all()


def test_beyond_the_batch_limit_requests_only_wait(seated):
    limit = batch_limit(*seated, 1000, 200)
    at, beyond = (steady(*seated, 1000, 200, np.array([c])) for c in (limit, 3 * limit))
    np.testing.assert_allclose(beyond.requests_per_s, at.requests_per_s, rtol=0.02)
    assert beyond.queue_s[0] > at.queue_s[0] + 1.9 * limit / at.requests_per_s[0] * 0.9


def test_beyond_a_full_cache_prompts_are_computed_again(served):
    """Room that is left over lies anywhere from none to a prompt of 1,000; in 199 of 1,000 cases the 199 tokens that
    all others grow by do not fit, and a prompt is computed twice: at most 199 / 1,199 of the rate is lost. A cache that
    reserves whole answers loses nothing."""
    deployment, memory = served
    limit = batch_limit(*served, 1000, 200)
    at, beyond = (steady(*served, 1000, 200, np.array([c])).requests_per_s[0] for c in (limit, 3 * limit))
    assert 1000 / 1199 < beyond / at < 0.95
    reserving = replace(deployment, engine=replace(deployment.engine, reserves_output=True))
    limit = batch_limit(reserving, memory, 1000, 200)
    at, beyond = (steady(reserving, memory, 1000, 200, np.array([c])).requests_per_s[0] for c in (limit, 3 * limit))
    assert beyond == pytest.approx(at, rel=0.02)


def test_a_prompt_heavy_load_is_bound_by_prompts(served):
    state = steady(*served, 8000, 8, np.array([64.0]))
    assert state.mixed_share[0] == 1.0
    assert state.decoding[0] < 32, "most slots wait for their prompt"


def test_what_arrives_leaves(served):
    points = at_rate(*served, 1000, 200, 1.0)
    life_s = points.ttft_s + 199 * points.tpot_s
    assert points.requests_per_s[0] == 1.0
    assert points.concurrency[0] == pytest.approx(life_s[0], rel=0.15)


def test_waiting_grows_with_the_rate(served):
    slow, fast = (at_rate(*served, 1000, 200, rate) for rate in (0.5, 8.0))
    assert fast.ttft_s[0] > slow.ttft_s[0]
    assert fast.tpot_s[0] > slow.tpot_s[0]


def test_an_impossible_rate_has_no_answer_unless_the_run_ends(served):
    found = at_rate(*served, 1000, 200, 1e4)
    assert isinstance(found, Infeasible)
    assert found.need == 1e4 > found.have
    assert f"{ceil(1e4 / found.have * 1.0001)} replicas" in found.smallest_change
    short, long = (at_rate(*served, 1000, 200, 1e4, n) for n in (1e3, 1e4))
    assert long.ttft_s[0] > 5 * short.ttft_s[0]


@pytest.mark.parametrize("mode", ["static", "closed", "open"])
def test_each_mode_asks_for_its_size(deploy, mode):
    with pytest.raises(ScenarioError, match="needs --"):
        estimate(deploy(tp=4), Workload(mode=mode, input_tokens=10, output_tokens=10))


def test_replicas_multiply_the_rate(deploy):
    one, two = (
        estimate(deploy(tp=4, dp=d), Workload(mode="closed", input_tokens=500, output_tokens=100, concurrency=16 * d))
        for d in (1, 2)
    )
    assert isinstance(one, Estimate)
    assert isinstance(two, Estimate)
    assert two.output_tokens_per_s == pytest.approx(2 * one.output_tokens_per_s)
    assert two.tpot_s == pytest.approx(one.tpot_s)
    assert two.power_w == pytest.approx(2 * one.power_w)
