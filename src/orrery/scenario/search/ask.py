"""``orrery search``: the best network of a space for each device, its front, and how it does on the other devices."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.hardware.device import Device
from orrery.planner.architecture.assign import assigned
from orrery.planner.architecture.evolution import EvolutionKnobs, by_evolution
from orrery.planner.architecture.exact import Found, best_of, by_enumeration, by_program, pareto, signed
from orrery.planner.architecture.gradient import GradientKnobs, by_gradient
from orrery.planner.architecture.policy import PolicyKnobs, by_policy
from orrery.planner.architecture.problem import Networks, Problem, sign
from orrery.planner.architecture.together import by_gated_paths, by_policy_and_weights
from orrery.planner.architecture.toys import Toy, Twin
from orrery.planner.architecture.training import TrainingKnobs
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_search import SEARCH_BY_NAME, TRAINED
from orrery.scenario.inputs import read_asked
from orrery.scenario.search import blocks
from orrery.scenario.search.answer import Band, DeviceResult, Network, SearchAnswer
from orrery.scenario.search.costs import UNITS, Costs
from orrery.scenario.search.question import (
    BLOCK_DEFAULTS,
    BLOCK_SETTINGS,
    SearchQuestion,
    SearchSetting,
    resolve_search,
)
from orrery.scenario.search.scores import with_score

DRAWN = ("evolution", "differentiable", "policy")
"""Methods that end elsewhere with another seed."""

TOGETHER = ("differentiable", "policy")
"""Methods that train weights and architecture together where scores are trained."""

MAX_TRAINED = 500
"""Networks that are trained one by one to try them all."""

MAX_JUDGED = 16
"""Networks of such a search that are trained by themselves."""

EPSILON = 1e-12


@typed
def search(**settings: Any) -> SearchAnswer | InfeasibleAnswer:
    """The best network of a space for each device, within limits, with a front of two metrics.

    Settings are those of `orrery search`. ``InfeasibleAnswer`` where no network of the space keeps the limits on some
    device, with the least that can be had.
    """
    inputs = read_asked(SearchQuestion, settings, SEARCH_BY_NAME)
    question = resolve_search(inputs)
    problems: dict[str, Problem] = {}
    brought: dict[str, Costs] = {}
    notes: list[str] = []
    training = _training(inputs)
    for device in question.devices:
        costs, says = with_score(question.costs_on(device), inputs.scores, training)
        problems[device.name] = _problem(costs, question)
        brought[device.name] = costs
        notes += [note for note in (says, *costs.notes, *device.notes) if note not in notes]
    method = inputs.method or _default_method(next(iter(problems.values())), question)
    results: list[DeviceResult] = []
    for device in question.devices:
        problem = problems[device.name]
        limits = limits_of(inputs, problem)
        if (room := brought[device.name].held_at_most_bytes) < inf:
            limits["memory"] = min(limits.get("memory", inf), room)
        toy = brought[device.name].toy if inputs.scores == "trained" else None
        runs = [_searched(problem, question, method, limits, seed, toy) for seed in _seeds(inputs, method)]
        if not any(len(run.best) for run in runs):
            return InfeasibleAnswer(infeasible=_shortfall(problem, limits, device, method), notes=tuple(notes))
        results.append(_result(device, problem, problems, question, runs, limits))
        notes += _gaps(results[-1], limits, method)
    first = next(iter(problems.values()))
    return SearchAnswer(
        space=question.space,
        method=method,
        goal=question.goal,
        against=question.against,
        num_choices=len(first.choices),
        num_networks=float(first.num_networks),
        paths_bytes=_paths(next(iter(brought.values()))),
        devices=tuple(results),
        notes=tuple(notes),
        settings=inputs.written(),
    )


def _problem(costs: Costs, question: SearchSetting) -> Problem:
    for name in (question.goal, question.against):
        if name not in costs.metrics:
            known = ", ".join(costs.metrics)
            raise ScenarioError(f"objective: this space has no {name}; write {known}.")
    return Problem(
        choices=costs.choices,
        metrics={name: costs.metrics[name] for name in UNITS if name in costs.metrics},
        reference_name=costs.reference_name,
        reference=costs.reference,
    )


def _default_method(problem: Problem, question: SearchSetting) -> str:
    """The program where both metrics are sums, trying everything where they are not."""
    tables = (problem.metrics[name].table for name in (question.goal, question.against))
    return "enumeration" if any(table is None for table in tables) else "program"


def _seeds(inputs: SearchQuestion, method: str) -> range:
    first, count = inputs.seed or 0, inputs.seeds or 1
    if count > 1 and method not in DRAWN:
        raise ScenarioError(f"seeds: {method} draws nothing and ends at the same network; leave seeds out.")
    return range(first, first + count)


def limits_of(inputs: SearchQuestion, problem: Problem) -> dict[str, float]:
    """The most of each metric (of the score: the least); the tighter where a share and an amount are given."""
    found: dict[str, float] = {}
    for name, amount, share in (
        ("latency", inputs.latency_s, inputs.latency_ratio),
        ("energy", inputs.energy_j, inputs.energy_ratio),
        ("memory", inputs.memory_bytes, inputs.memory_ratio),
        ("parameters", inputs.max_parameters, None),
        ("score", inputs.min_score, inputs.min_score_ratio),
    ):
        given = [] if amount is None else [amount]
        if share is not None:
            if name not in problem.reference or (name == "score" and problem.reference[name] <= 0.0):
                raise ScenarioError(f"{name}: the reference has none above zero to take a share of; write an amount.")
            given.append(share * problem.reference[name])
        if given and name not in problem.metrics:
            raise ScenarioError(f"{name}: this space has none to limit; it has {', '.join(problem.metrics)}.")
        if given:
            found[name] = max(given) if name == "score" else min(given)
    return found


def _training(inputs: SearchQuestion) -> TrainingKnobs:
    if inputs.train_steps is not None and inputs.scores not in TRAINED:
        raise ScenarioError(f"train_steps: nothing is trained; write scores = {' or '.join(TRAINED)} beside it.")
    return TrainingKnobs(steps=inputs.train_steps or TrainingKnobs().steps, seed=inputs.seed or 0)


def _paths(costs: Costs) -> Mapping[str, float] | None:
    """Bytes of results that training a mean network holds with one, two and all paths of every choice in memory."""
    if costs.held_bytes is None:
        return None
    one = float(np.nanmean(costs.held_bytes, axis=1).sum())
    return {"one": one, "two": 2.0 * one, "all": float(np.nansum(costs.held_bytes))}


def _searched(
    problem: Problem,
    question: SearchSetting,
    method: str,
    limits: Mapping[str, float],
    seed: int,
    toy: Toy | None = None,
) -> Found:
    """One search; where a toy is trained along with it, its networks are then trained by themselves."""
    inputs, goal, against = question.inputs, question.goal, question.against
    if method == "program":
        return by_program(problem, goal, against, limits)
    if method == "enumeration" and inputs.scores == "trained" and problem.num_networks > MAX_TRAINED:
        raise ScenarioError(
            f"method: enumeration would train all {problem.num_networks:,} networks, and at most {MAX_TRAINED} are; "
            "write method = evolution, differentiable or policy, or scores = shared."
        )
    if method == "enumeration":
        return by_enumeration(problem, goal, against, limits)
    if method == "evolution":
        knobs = EvolutionKnobs(
            population=inputs.population or 40,
            generations=inputs.generations or 30,
            first_parameters=inputs.first_parameters or inf,
            seed=seed,
        )
        return by_evolution(problem, goal, against, limits, knobs)
    if toy is not None and method in TOGETHER:
        return _together(problem, question, method, limits, replace(_training(inputs), seed=seed), toy)
    if method == "differentiable":
        knobs = GradientKnobs(runs=inputs.runs or 8, steps=inputs.steps or 150, seed=seed)
        return by_gradient(problem, goal, against, limits, knobs)
    return by_policy(problem, goal, against, limits, PolicyKnobs(steps=inputs.steps or 300, seed=seed))


def _together(
    problem: Problem,
    question: SearchSetting,
    method: str,
    limits: Mapping[str, float],
    training: TrainingKnobs,
    toy: Toy,
) -> Found:
    """Weights and architecture trained together; what comes of it is judged by training it alone."""
    goal, against = question.goal, question.against
    if goal != "score":
        raise ScenarioError(f"objective: {method} with scores = trained learns the score; write it first.")
    if method == "policy":
        ends = by_policy_and_weights(problem, toy, limits, training, PolicyKnobs(seed=training.seed))
    elif isinstance(toy, Twin):
        ends = by_gated_paths(problem, toy, limits, training)
    else:
        raise ScenarioError("method: differentiable trains paths side by side; write method = policy for formats.")
    within = ends[problem.are_within(ends, limits)][:MAX_JUDGED]
    return Found(
        best=best_of(problem, goal, within), front=pareto(problem, goal, against, within), num_evaluated=len(within)
    )


def _result(
    device: Device,
    problem: Problem,
    problems: Mapping[str, Problem],
    question: SearchSetting,
    runs: list[Found],
    limits: Mapping[str, float],
) -> DeviceResult:
    """The best of all runs, the front of all runs, and the best one's latency on every device."""
    goal, against = question.goal, question.against
    best = best_of(problem, goal, np.concatenate([run.best for run in runs]))
    front = pareto(problem, goal, against, np.concatenate([run.front for run in runs]))
    bounds = [run.bound for run in runs if run.bound is not None]
    found = [float(problem.metrics[goal].of(run.best)[0]) for run in runs if len(run.best)]
    served = None
    if question.space == "blocks":
        given = {name: getattr(question.inputs, name) for name in BLOCK_SETTINGS}
        settings = BLOCK_DEFAULTS | {k: v for k, v in given.items() if v is not None} | {"device": device.name}
        served = blocks.served(settings, best[0])
    return DeviceResult(
        device=device.name,
        best=_network(problem, best[0]),
        reference_name=problem.reference_name,
        reference=problem.reference,
        limits=dict(limits),
        front=tuple(_network(problem, one) for one in front),
        band=tuple(_band(problem, goal, against, runs, front)) if len(runs) > 1 else (),
        goals=tuple(found),
        num_failed=len(runs) - len(found),
        bound=bounds[0] if bounds else None,
        is_proven=all(run.is_proven for run in runs),
        num_evaluated=sum(run.num_evaluated for run in runs),
        searched_latency_s=sum(
            float(problem.metrics["latency"].of(run.evaluated).sum()) for run in runs if run.evaluated is not None
        ),
        latency_s_on={name: float(p.metrics["latency"].of(best)[0]) for name, p in problems.items()},
        served=served,
    )


def _band(problem: Problem, goal: str, against: str, runs: list[Found], front: Networks) -> list[Band]:
    """At every point of the common front: the least and greatest goal that a seed reaches with no more of the other."""
    found: list[Band] = []
    for at in problem.cost(against, front):
        reached = [
            float(problem.cost(goal, run.front)[problem.cost(against, run.front) <= at + EPSILON * abs(at)].min())
            for run in runs
            if len(run.front) and (problem.cost(against, run.front) <= at + EPSILON * abs(at)).any()
        ]
        goals = sorted(sign(goal) * value for value in reached)
        found.append(Band(against=float(sign(against) * at), low=goals[0], high=goals[-1], num_seeds=len(goals)))
    return found


def _network(problem: Problem, one: Networks) -> Network:
    return Network(
        alternatives=problem.words(one),
        metrics={name: float(metric.of(one[None])[0]) for name, metric in problem.metrics.items()},
    )


def _gaps(found: DeviceResult, limits: Mapping[str, float], method: str) -> list[str]:
    """Limits that the program's sums keep and the network as a whole does not."""
    return [
        f"{name}: the {method}'s sum keeps {limit:.4g} on {found.device}, the network as a whole has "
        f"{found.best.metrics[name]:.4g}"
        for name, limit in limits.items()
        if sign(name) * found.best.metrics[name] > sign(name) * limit + 1e-9 * abs(limit)
    ]


def _shortfall(problem: Problem, limits: Mapping[str, float], device: Device, method: str) -> Infeasible:
    """The first limit that no network keeps by itself, or else all of them at once."""
    for name, limit in limits.items():
        if problem.metrics[name].table is None:
            continue
        table = signed(problem, name)
        if (least := assigned(table, {}, {})) is None:
            continue
        need = sign(name) * least.cost + problem.metrics[name].constant
        if sign(name) * need > sign(name) * limit:
            setting = {"score": "min_score", "parameters": "max_parameters"}.get(name, f"{name}_{UNITS[name]}")
            return Infeasible(
                what=f"{name} of any network of the space on {device.name}",
                need=need,
                have=limit,
                unit=UNITS[name] or name,
                smallest_change=f"Write {setting} = {need:.4g}, or search another space.",
            )
    known = "no network of the space" if method in ("program", "enumeration") else f"no network that {method} met"
    return Infeasible(
        what=f"{known} keeps all limits at once on {device.name}",
        need=1,
        have=0,
        unit="networks",
        smallest_change="Loosen a limit, or write method = program where metrics are sums.",
    )
