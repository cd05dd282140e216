"""Servers that are switched off together when idle, against the exact Markov chain of their cycles.

A cycle begins when the last request leaves. The first arrival wakes all servers, which serve after a fixed setup; what
came meanwhile is dealt out evenly, and later requests join the shortest queue, until nobody is left. By renewal reward
(Gandhi, Doroudi, Harchol-Balter and Scheller-Wolf, "Exact analysis of the M/M/k/setup class of Markov chains via
recursive renewal reward", 2013) the mean number of requests is the expected integral of it over a cycle by the cycle's
expected length; Little's law makes it a response time. What is left to chance is the run alone.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix, identity
from scipy.sparse.linalg import spsolve

from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms, Scaler
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests

LOOK_S, SETUP_S, MEAN_TOKENS, COUNT = 0.4, 6.0, 300, 2000
MOST = {1: 150, 2: 40, 3: 14}
"""Requests at a server where the chain is cut off."""


def until_empty(rate, mean_s, servers):
    """Expected time, and integral of the number of requests, from every state until nobody is left."""
    most = MOST[servers]
    states = list(itertools.product(range(most + 1), repeat=servers))
    number = {state: k for k, state in enumerate(states)}
    rows, columns, chances = [], [], []
    step_s, inside = np.zeros(len(states)), np.array([sum(state) for state in states], dtype=float)
    for k, state in enumerate(states):
        if not any(state):
            continue
        moves = [(tuple(n - (j == i) for j, n in enumerate(state)), 1.0 / mean_s) for i, n in enumerate(state) if n]
        if (shortest := state.index(min(state))) >= 0 and min(state) < most:
            moves.append((tuple(n + (j == shortest) for j, n in enumerate(state)), rate))
        total = sum(move[1] for move in moves)
        step_s[k] = 1.0 / total
        for to, speed in moves:
            rows.append(k), columns.append(number[to]), chances.append(speed / total)
    walk = csr_matrix((chances, (rows, columns)), shape=(len(states), len(states)))
    passed = (identity(len(states)) - walk).tocsc()
    return number, spsolve(passed, step_s), spsolve(passed, step_s * inside)


def evenly(count, servers):
    return tuple(count // servers + (k < count % servers) for k in range(servers))


def response_s(rate, mean_s, servers, setup_s, look_s=0.0):
    """Mean response time. Servers are switched off at the first look at which nobody is there: looks come every
    ``look_s``, so that an arrival may still find them on."""
    number, length_s, area = until_empty(rate, mean_s, servers)
    still_on = 1.0 - (1.0 - math.exp(-rate * look_s)) / (rate * look_s) if look_s else 0.0
    one, most = number[evenly(1, servers)], servers * MOST[servers] - 1
    chances = [math.exp(-rate * setup_s + k * math.log(rate * setup_s) - math.lgamma(k + 1)) for k in range(most)]
    woken = [number[evenly(1 + k, servers)] for k in range(most)]
    weigh = lambda values: float(np.dot(chances, values[woken]))  # noqa: E731
    cycle_s = 1.0 / rate + still_on * length_s[one] + (1.0 - still_on) * (setup_s + weigh(length_s))
    held = still_on * area[one] + (1.0 - still_on) * (setup_s + rate * setup_s**2 / 2.0 + weigh(area))
    return held / cycle_s / rate


def test_one_server_is_the_closed_form():
    """M/M/1 with a fixed setup D: 1 / (mu - rate) + (2 D + rate D^2) / (2 (1 + rate D)); with half load and D = 2
    means: 2 + (4 + 2) / (2 x 2) = 3.5 means."""
    assert response_s(0.5, 1.0, 1, 2.0) == pytest.approx(3.5, rel=1e-9)
    assert response_s(0.5, 1.0, 1, 1e-9) == pytest.approx(2.0, rel=1e-6)


def test_servers_without_setup_lie_between_one_queue_and_queues_apart():
    """Two servers at half load: Erlang C, one queue for both, has 4/3 means; queues apart have 2."""
    assert 4.0 / 3.0 < response_s(1.0, 1.0, 2, 1e-9) < 1.5


def test_a_request_that_always_wakes_its_servers_waits_for_them():
    """So few requests that each is alone: a setup and a service."""
    assert response_s(1e-6, 1.0, 2, 5.0) == pytest.approx(6.0, rel=1e-4)


def traffic(count, rate, seed):
    draws = np.random.default_rng(seed)
    return Requests(
        arrive_s=np.cumsum(draws.standard_exponential(count)) / rate,
        input_tokens=np.full(count, 16, dtype=np.int64),
        output_tokens=np.maximum(1, np.ceil(draws.standard_exponential(count) * MEAN_TOKENS)).astype(np.int64),
    )


@pytest.mark.parametrize(("servers", "rate"), [pytest.param(1, 0.2, marks=pytest.mark.slow), (2, 0.5), (3, 0.8)])
def test_mean_responses_are_those_of_the_chain(servers, rate):
    """Within three standard errors of the run's batch means, which are a few percent."""
    settings = {"model": "llama-3.1-8b", "device": "h100-sxm", "max_num_seqs": 1, "replicas": servers}
    service, _ = service_for(read_scenario(settings))
    terms = PoolTerms(name="p", replicas_min=0, replicas_max=servers, cold_start_s=SETUP_S)
    on_off = Scaler(
        name="on-off",
        rule=lambda signals, _: float(servers if signals.now.in_flight else 0),
        knobs=None,
        period_s=LOOK_S,
    )
    requests = traffic(COUNT, rate, seed=servers)
    run = run_fleet(FleetService(service=service, terms=(terms,), scaler=on_off), requests)
    assert run.fates["served"] == COUNT
    out = run.outcome
    serving_s, spent_s = out.finish_s - out.admitted_s, out.finish_s - out.reached_s
    assert serving_s.std() / serving_s.mean() == pytest.approx(1.0, abs=0.05)
    seen = COUNT / float(out.reached_s.max())  # the rate and the mean service that this run drew
    exact_s = response_s(seen, float(serving_s.mean()), servers, SETUP_S + LOOK_S / 2.0, LOOK_S)
    batches = spent_s.reshape(40, -1).mean(axis=1)
    error_s = float(batches.std(ddof=1)) / math.sqrt(40)
    assert error_s < 0.08 * exact_s
    assert abs(spent_s.mean() - exact_s) < 3.0 * error_s
