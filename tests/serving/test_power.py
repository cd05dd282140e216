"""Power of a deployment: its steps', the time without any, and its machines'; told alike by both ways to answer."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from orrery.execution.power import steps_power_w
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.workload import Workload


def _answer(deployment, **traffic) -> Estimate:
    found = estimate(deployment, Workload(input_tokens=512, output_tokens=128, **traffic))
    assert isinstance(found, Estimate)
    return found


def test_mean_power_goes_by_time_with_and_without_prompts(deploy):
    """Of the busy time a share p is spent in steps with prompts: (1 - p) x decode power + p x prompt power."""
    found = _answer(deploy(tp=4), mode="closed", concurrency=32)
    steps = found.steps
    decode_w, prompt_w = (
        steps_power_w(found.deployment, steps.ticks.done, (i,), float(steps.ticks.time_s[i]))
        for i in (steps.decode_entry, steps.prompt_entry)
    )
    expected = (1 - steps.prompt_share) * decode_w + steps.prompt_share * prompt_w
    assert found.power_w == pytest.approx(4 * expected)


def test_a_deployment_that_waits_for_arrivals_idles_meanwhile(deploy):
    """With L requests in flight at random none is there for exp(-L) of the time."""
    deployment = deploy(tp=4)
    found = _answer(deployment, mode="open", request_rate_per_s=0.05)
    idle_w = 4 * deployment.cluster.device.idle_power_w
    busy_frac = 1 - exp(-found.concurrency)
    steps = replace(found.steps, busy_frac=1.0)
    busy_w = 4 * steps.power_w(deployment)
    assert 0.0 < busy_frac < 0.3
    assert found.power_w == pytest.approx(idle_w + busy_frac * (busy_w - idle_w))
    assert found.rate_used_frac < 0.05


def test_a_pipeline_with_one_request_keeps_one_stage_busy(deploy):
    found = _answer(deploy(pp=4), mode="closed", concurrency=1)
    assert found.steps.busy_frac == pytest.approx(0.25)


def test_machines_stand_beside_the_devices(deploy):
    deployment = deploy(tp=4)
    found = _answer(deployment, mode="closed", concurrency=8)
    assert found.host_power_w == pytest.approx(4 * deployment.cluster.device.host_power_w)
    assert found.energy_j_per_token == pytest.approx(found.power_w / found.output_tokens_per_s)
    both = (found.power_w + found.host_power_w) / found.output_tokens_per_s
    assert found.energy_j_per_token_with_host == pytest.approx(both)


def test_the_simulator_draws_what_the_closed_form_draws(deploy):
    """Steps of the same work and time, by one law: 32 requests in flight, 20 times over."""
    deployment = deploy(tp=4)
    count = 640
    requests = Requests(arrive_s=np.zeros(count), input_tokens=np.full(count, 512), output_tokens=np.full(count, 128))
    run = simulate(Service(pools=(Pool(deployment=deployment),)), requests, concurrency=32)
    found = _answer(deployment, mode="closed", concurrency=32, num_requests=count)
    assert run.energy_j / run.duration_s == pytest.approx(found.power_w, rel=0.08)
