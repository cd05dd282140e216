"""Requests as a scenario states them: a trace, conversations, agents, shared prefixes, or independent lengths."""

import math
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.trace_requests import requests_of
from orrery.catalog.traces import load_trace
from orrery.scenario.adapters import with_adapters
from orrery.scenario.images import prompt_tokens
from orrery.scenario.knobs import read_knobs
from orrery.scenario.schema import Scenario
from orrery.scenario.users import think_s, users_requests
from orrery.serving.mix import SPREAD_FRAC
from orrery.serving.requests import Requests
from orrery.serving.synthesis import (
    Agents,
    Conversations,
    Length,
    Prefixes,
    agent_loops,
    conversations,
    independent,
    shared_prefixes,
)
from orrery.serving.workload import loop_requests

DEFAULT_REQUESTS = 1000

SHAPES = ("lengths", "input_tokens", "output_tokens", "input_tokens_std", "output_tokens_std", "arrivals")
"""Settings that a trace leaves no room for."""


def requests_for(scenario: Scenario, rate_per_s: float | None = None) -> Requests:
    """The traffic of a scenario, at ``rate_per_s`` in place of its own where that is given."""
    return with_adapters(scenario, _plain(scenario, rate_per_s))


def _plain(scenario: Scenario, rate_per_s: float | None) -> Requests:
    seed, rate = scenario.seed or 0, rate_per_s if rate_per_s is not None else scenario.rate
    if scenario.trace is not None:
        return _replayed(scenario, rate or 0.0, seed)
    count = scenario.num_requests or _count(scenario)
    at = math.inf if rate is None or scenario.concurrency is not None else rate
    law = scenario.arrivals or "poisson"
    knobs: dict[str, Any] = dict(read_knobs(scenario.knob)["arrivals"])
    question, answer = length_of(scenario, "input"), length_of(scenario, "output")
    if scenario.users is not None:
        return users_requests(scenario, count, (question, answer))
    if scenario.turns is not None:
        traffic = Conversations(
            num_turns=scenario.turns,
            think_s=think_s(scenario),
            system_tokens=scenario.prefix_tokens or 0,
            question=question,
            answer=answer,
            context_tokens=scenario.max_model_len or 0,
        )
        return conversations(count, at, seed, traffic, law, **knobs)
    if scenario.calls is not None:
        tasks = Agents(
            num_calls=scenario.calls, task=question, answer=answer, context_tokens=scenario.max_model_len or 0
        )
        return agent_loops(count, at, seed, tasks, law, **knobs)
    if scenario.prefix_tokens is not None:
        prefixes = Prefixes(
            num_prefixes=scenario.prefix_groups or 10,
            prefix_tokens=scenario.prefix_tokens,
            suffix=question,
            answer=answer,
        )
        return shared_prefixes(count, at, seed, prefixes, law, **knobs)
    return independent(count, at, seed, input=question, output=answer, law=law, **knobs)


def _count(scenario: Scenario) -> int:
    """Requests where nobody says how many: as many as the closed form takes a closed loop to run, else a thousand."""
    clients = scenario.concurrency or scenario.users
    return DEFAULT_REQUESTS if clients is None else loop_requests(clients)


def _replayed(scenario: Scenario, rate: float, seed: int) -> Requests:
    if given := [n for n in SHAPES if getattr(scenario, n) is not None]:
        raise ScenarioError(f"{given[0]}: the trace already says it; leave out {given[0]}, or leave out trace.")
    trace = load_trace(scenario.trace or "", seed)
    found = requests_of(
        trace, count=scenario.num_requests or 0, rate=rate, seed=seed, most_tokens=scenario.max_model_len or 0
    )
    return found


def length_of(scenario: Scenario, side: str) -> Length:
    """One side's lengths: a lognormal where a spread is given, unless the scenario names a law.

    Without either they are constant, but in a closed loop evenly within a tenth of their mean: equal requests that
    start together march in step for ever, while services see lengths that differ.
    """
    mean, std = getattr(scenario, f"{side}_tokens"), getattr(scenario, f"{side}_tokens_std")
    if side == "input":
        mean = prompt_tokens(scenario)
    if mean is None:
        raise ScenarioError(f"{side}_tokens: is missing; write the mean length, such as {side}_tokens = 1024.")
    if is_spread(scenario, side):
        return Length(mean_tokens=float(mean), law="uniform", range_ratio=SPREAD_FRAC)
    law = scenario.lengths or ("lognormal" if std else "constant")
    return Length(mean_tokens=float(mean), std_tokens=std or 0.0, law=law)


def is_spread(scenario: Scenario, side: str) -> bool:
    """Whether one side's lengths are drawn around their mean although nobody asked for it."""
    return (
        scenario.concurrency is not None
        and scenario.lengths is None
        and not getattr(scenario, f"{side}_tokens_std")
        and scenario.trace is None
    )
