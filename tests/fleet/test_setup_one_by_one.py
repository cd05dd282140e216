"""Servers that are started one by one as requests come, against the exact Markov chain of their looks.

At every look a server is started for each request that has none, up to all of them, with a fixed setup of some looks;
all are switched off at the first look at which nobody is there. Between two looks what serves does not change: arrivals
join the shortest queue of the servers that are on, or stand where none is. The state just after a look (looks that are
left until each server serves, requests at each) is a Markov chain in discrete time, whose step is the exponential of
the generator between looks, summed by uniformization. Its mean number of requests is a response time by Little's law.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms, Scaler
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests

LOOK_S, SETUP_LOOKS, MEAN_TOKENS, COUNT = 0.5, 4, 300, 3000
MOST = {1: 60, 2: 16, 3: 10}
"""Requests at a server where the chain is cut off."""
OFF = 1_000_000
"""In place of the looks that are left until a server serves, of one that is off."""


class Looks:
    """The chain of servers that are on, starting or off; time in whatever unit ``look`` is written in."""

    def __init__(self, rate, mean, servers, look, setup_looks):
        self.servers, self.look, self.setup_looks, self.rate = servers, look, setup_looks, rate
        self.most = MOST[servers]
        self.states = list(itertools.product(range(self.most + 1), repeat=servers))
        self.number = {state: k for k, state in enumerate(self.states)}
        self.inside = np.array([sum(state) for state in self.states], dtype=float)
        self.pace = rate + servers / mean
        events = self.pace * look
        terms = int(events + 12.0 * math.sqrt(events) + 12.0)
        self.chances = [math.exp(-events + k * math.log(events) - math.lgamma(k + 1)) for k in range(terms)]
        self.steps_of = [
            self.steps(self.jump(on, rate / self.pace, 1.0 / mean / self.pace)) for on in range(servers + 1)
        ]

    def jump(self, on, arrives, leaves):
        """Chances of the next event where so many servers are on; requests stand at the first where none is."""
        rows, columns, chances = [], [], []
        for k, state in enumerate(self.states):
            to = min(range(max(1, on)), key=lambda i, state=state: state[i])
            moves = [(i, -1, leaves) for i in range(on) if state[i]]
            moves += [(to, 1, arrives)] if state[to] < self.most else []
            for i, change, chance in moves:
                then = tuple(n + change * (j == i) for j, n in enumerate(state))
                rows.append(self.number[then]), columns.append(k), chances.append(chance)
            rows.append(k), columns.append(k), chances.append(1.0 - sum(move[2] for move in moves))
        return csr_matrix((chances, (rows, columns)), shape=(len(self.states), len(self.states)))

    def steps(self, jump):
        """By state: chances of the states a look later, and the integral of the number of requests until then."""
        found, then, areas, later = np.eye(len(self.states)), 0.0, 0.0, 1.0
        for chance in self.chances:
            later -= chance
            then = then + chance * found
            areas = areas + max(0.0, later) / self.pace * (self.inside @ found)
            found = jump @ found
        return then, areas

    @cache  # noqa: B019
    def spread(self, on):
        """By state: the state in which all requests of the first are dealt evenly to the servers that are on."""
        dealt = [tuple(n // on + (k < n % on) if k < on else 0 for k in range(self.servers)) for n in self.inside]
        fits = [max(state) <= self.most for state in dealt]
        return [self.number[tuple(int(n) for n in state)] if ok else 0 for state, ok in zip(dealt, fits, strict=True)]

    def decided(self, left, requests):
        """Servers after a look at which so many requests are there: what is started is ready after its setup."""
        if requests == 0:
            return (OFF,) * self.servers
        wanted = max(sum(k != OFF for k in left), min(self.servers, requests))
        goes_on = [k - 1 if 0 < k < OFF else k for k in left]
        return tuple(self.setup_looks if k == OFF and i < wanted else k for i, k in enumerate(goes_on))

    def looked(self, left, found, after):
        """Add the states after a look."""
        on = sum(k == 0 for k in left)
        for requests in range(self.servers + 1):
            there = self.inside == requests if requests < self.servers else self.inside >= requests
            part, then = np.where(there, found, 0.0), self.decided(left, requests)
            ready = sum(k == 0 for k in then)
            if not on and ready:  # those that stood are dealt to all that are ready
                part = np.bincount(self.spread(ready), part, len(self.states))
            if part.any():
                after[then] = after.get(then, 0.0) + part

    def response(self):
        """Mean time that a request is there."""
        first = np.zeros(len(self.states))
        first[0] = 1.0
        now, areas = {(OFF,) * self.servers: first}, []
        while len(areas) < 100 or np.ptp(areas[-50:]) > 1e-4 * areas[-1]:
            after, area = {}, 0.0
            for left, found in now.items():
                step, areas_of = self.steps_of[sum(k == 0 for k in left)]
                area += float(areas_of @ found)
                self.looked(left, step @ found, after)
            now = after
            areas.append(area)
        return areas[-1] / self.look / self.rate


def test_a_server_alone_is_the_closed_form():
    """M/M/1 that is switched off when idle, with setups S:
    1 / (mu - rate) + (2 E[S] + rate E[S^2]) / (2 (1 + rate E[S])).
    Half load, D = 2 means, looks every 0.1: an arrival finds the server still on with chance 0.025; else its setup is
    2 and on average half a look: E[S] = 0.9754 x 2.05 = 2.000, E[S^2] = 0.9754 x 4.203 = 4.100, so
    2 + (4.000 + 2.050) / 4.000 = 3.5125 means."""
    assert Looks(0.5, 1.0, 1, 0.1, 20).response() == pytest.approx(3.5125, rel=1e-3)


def test_servers_without_setup_are_one_queue_or_queues_apart():
    """Two servers at half load that serve a look after they are needed: Erlang C has 4/3 means for one queue, queues
    apart 2."""
    assert 4.0 / 3.0 < Looks(1.0, 1.0, 2, 0.05, 1).response() < 2.0


def test_a_request_alone_waits_for_its_server():
    """Half a look until it is seen, three looks of setup, its service: 0.25 + 1.5 + 1."""
    assert Looks(1e-5, 1.0, 2, 0.5, 3).response() == pytest.approx(2.75, rel=1e-3)


def check_against_the_fleet(servers, rate):
    settings = {"model": "llama-3.1-8b", "device": "h100-sxm", "max_num_seqs": 1, "replicas": servers}
    service, _ = service_for(read_scenario(settings))
    terms = PoolTerms(name="p", replicas_min=0, replicas_max=servers, cold_start_s=SETUP_LOOKS * LOOK_S)

    def wanted(signals, _):
        now = signals.now
        return float(max(now.serving + now.starting, min(servers, now.in_flight)) if now.in_flight else 0)

    scaler = Scaler(name="one by one", rule=wanted, knobs=None, period_s=LOOK_S)
    draws = np.random.default_rng(10 + servers)
    requests = Requests(
        arrive_s=np.cumsum(draws.standard_exponential(COUNT)) / rate,
        input_tokens=np.full(COUNT, 16, dtype=np.int64),
        output_tokens=np.maximum(1, np.ceil(draws.standard_exponential(COUNT) * MEAN_TOKENS)).astype(np.int64),
    )
    run = run_fleet(FleetService(service=service, terms=(terms,), scaler=scaler), requests)
    assert run.fates["served"] == COUNT
    out = run.outcome
    spent_s = out.finish_s - out.reached_s
    mean_s, seen = float((out.finish_s - out.admitted_s).mean()), COUNT / float(out.reached_s.max())
    exact_s = Looks(seen, mean_s, servers, LOOK_S, SETUP_LOOKS).response()
    error_s = float(spent_s.reshape(40, -1).mean(axis=1).std(ddof=1)) / math.sqrt(40)
    assert error_s < 0.08 * exact_s
    assert abs(spent_s.mean() - exact_s) < 3.0 * error_s


@pytest.mark.parametrize(("servers", "rate"), [pytest.param(1, 0.2, marks=pytest.mark.slow), (2, 0.5)])
def test_mean_responses_are_those_of_the_chain(servers, rate):
    """Within three standard errors of the run's batch means, which are a few percent."""
    check_against_the_fleet(servers, rate)


@pytest.mark.slow
def test_three_servers_too():
    check_against_the_fleet(3, 0.8)
