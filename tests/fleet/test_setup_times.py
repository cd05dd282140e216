"""One server that is switched off when idle, against the closed form and against a slow computation of its own."""

import math
from dataclasses import replace

import numpy as np
import pytest

from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms, Scaler
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests

PERIOD_S, SETUP_S, RATE = 0.1, 3.0, 0.25


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
    requests = traffic(1200, seed=1)
    whenever = Scaler(
        name="on-demand", rule=lambda signals, _: float(signals.now.in_flight > 0), knobs=None, period_s=PERIOD_S
    )
    run = run_fleet(fleet_of(service, whenever), requests)
    assert run.fates["served"] == 1200
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


def erlang_c_wait_s(rate, mean_s, servers):
    """Mean wait of M/M/c: C / (c / s - rate), where C is Erlang's chance that all servers are busy."""
    load = rate * mean_s
    terms = [load**k / math.factorial(k) for k in range(servers)]
    full = load**servers / math.factorial(servers) / (1 - load / servers)
    return full / (sum(terms) + full) / (servers / mean_s - rate)


def test_erlang_by_hand():
    """One server at half load waits as long as it serves; two at half load each a third of that."""
    assert erlang_c_wait_s(0.5, 1.0, 1) == pytest.approx(1.0)
    assert erlang_c_wait_s(1.0, 1.0, 2) == pytest.approx(1.0 / 3.0)


def test_several_servers_wait_between_one_queue_and_queues_apart_and_longer_by_their_setups():
    """Requests join the shortest of three queues: not better than one queue for all (Erlang C), far better than queues
    apart. With servers that are switched off they wait longer, on average by no more than a setup and a look."""
    scenario = read_scenario({"model": "llama-3.1-8b", "device": "h100-sxm", "max_num_seqs": 1, "replicas": 3})
    service, _ = service_for(scenario)
    requests, look_s = traffic(2500, seed=5), 2 * PERIOD_S
    requests = replace(requests, arrive_s=requests.arrive_s / 3.0)
    waits = {}
    for name, low, rule in (
        ("always", 3, lambda signals, _: 3.0),
        ("on demand", 0, lambda signals, _: float(min(3, signals.now.in_flight))),
    ):
        terms = PoolTerms(name="p", replicas_min=low, replicas_max=3, cold_start_s=SETUP_S)
        scaler = Scaler(name="s", rule=rule, knobs=None, period_s=look_s)
        run = run_fleet(FleetService(service=service, terms=(terms,), scaler=scaler), requests)
        assert run.fates["served"] == 2500
        waits[name] = run.outcome.admitted_s - run.outcome.reached_s
        mean_s = float((run.outcome.finish_s - run.outcome.admitted_s).mean())
    one_queue_s, apart_s = erlang_c_wait_s(3 * RATE, mean_s, 3), erlang_c_wait_s(RATE, mean_s, 1)
    assert 0.9 * one_queue_s <= waits["always"].mean() <= 0.5 * (one_queue_s + apart_s)
    assert waits["always"].mean() < waits["on demand"].mean() <= waits["always"].mean() + SETUP_S + look_s
    assert waits["on demand"].min() == pytest.approx(0.0, abs=look_s)
