"""One server that is switched off when idle, against the closed form and against a slow computation of its own."""

import math

import numpy as np
import pytest

from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms, Scaler
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests

PERIOD_S, SETUP_S, RATE = 0.05, 3.0, 0.25


def traffic(count, seed):
    """Poisson arrivals; outputs so long that service times are nearly exponential."""
    draws = np.random.default_rng(seed)
    return Requests(
        arrive_s=np.cumsum(draws.standard_exponential(count)) / RATE,
        input_tokens=np.full(count, 16, dtype=np.int64),
        output_tokens=np.maximum(1, np.ceil(draws.standard_exponential(count) * 300)).astype(np.int64),
    )


def fleet_of(service, scaler):
    terms = PoolTerms(name="p", replicas_min=0, replicas_max=1, cold_start_s=SETUP_S)
    return FleetService(service=service, terms=(terms,), scaler=scaler)


def slowly(reached_s, service_s):
    """Start of every request by a loop over them: a start begins at the next look, a stop at the first idle look."""
    found, free_s, is_on = [], 0.0, False
    for at_s, takes_s in zip(reached_s, service_s, strict=True):
        if is_on and math.ceil(free_s / PERIOD_S - 1e-9) * PERIOD_S < at_s:
            is_on = False
        ready_s = free_s if is_on else math.ceil(at_s / PERIOD_S - 1e-9) * PERIOD_S + SETUP_S
        is_on = True
        found.append(max(at_s, ready_s))
        free_s = found[-1] + takes_s
    return np.array(found)


def test_waiting_is_that_of_a_server_with_setup_times():
    scenario = read_scenario({"model": "llama-3.1-8b", "device": "h100-sxm", "max_num_seqs": 1})
    service, _ = service_for(scenario)
    requests = traffic(4000, seed=3)
    whenever = Scaler(
        name="on-demand", rule=lambda signals, _: float(signals.now.in_flight > 0), knobs=None, period_s=PERIOD_S
    )
    run = run_fleet(fleet_of(service, whenever), requests)
    assert run.fates["served"] == 4000
    out = run.outcome
    takes_s = out.finish_s - out.admitted_s
    assert takes_s.std() / takes_s.mean() == pytest.approx(1.0, abs=0.05)
    waits_s = out.admitted_s - out.reached_s
    slow_s = slowly(out.reached_s, takes_s) - out.reached_s
    assert waits_s == pytest.approx(slow_s, abs=2.1 * PERIOD_S)
    assert waits_s.mean() == pytest.approx(slow_s.mean(), abs=0.2 * PERIOD_S)
    rho = RATE * takes_s.mean()
    setup_s = SETUP_S + PERIOD_S / 2
    queue_s = RATE * (takes_s**2).mean() / 2 / (1 - rho)
    closed_s = queue_s + (2 * setup_s + RATE * setup_s**2) / (2 * (1 + RATE * setup_s))
    assert waits_s.mean() == pytest.approx(closed_s, rel=0.12)
