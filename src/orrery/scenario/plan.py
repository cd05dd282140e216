"""Planning from a scenario: its devices, formats and traffic as a search space and a goal."""

import time
from collections.abc import Sequence

from orrery.base.errors import ScenarioError
from orrery.numerics.registry import get_format
from orrery.planner.detail import detail
from orrery.planner.goal import Goal, Objectives
from orrery.planner.money import tariff_of
from orrery.planner.search import search
from orrery.planner.space import Fixed, Option, Space, candidates
from orrery.scenario.objectives import read_objectives, request_limits_s
from orrery.scenario.plan_answer import PlanAnswer, nothing_works
from orrery.scenario.resolve import Parts, device_names, find, words
from orrery.scenario.schema import Scenario
from orrery.scenario.traffic import traffic_of

MOST_DEVICES = 8
"""Without --max-devices: one usual server."""

IN_FULL = 5
"""Plans that are worked out in full; the rest are counted."""


def plan_scenario(scenario: Scenario, count: int = IN_FULL) -> PlanAnswer:
    """Search the space of a scenario for its goal."""
    started = time.perf_counter()
    found_parts = [find(scenario, name) for name in device_names(scenario)]
    goal, traffic_notes = goal_of(scenario)
    space = space_of(scenario, found_parts, goal.max_devices)
    found = search(goal, candidates(space))
    if not found.num_candidates:
        raise ScenarioError(_empty(scenario, goal))
    plans = tuple(detail(goal, operation) for operation in found.plans[:count])
    infeasible = None if plans else nothing_works(found.rejected)
    notes = [n for p in found_parts for n in p.notes] + [*traffic_notes, *_scope_notes(scenario, goal)]
    notes += [n for option in space.options for n in option.tariff.notes]
    return PlanAnswer(
        goal=goal, plans=plans, num_plans=len(found.plans), rejected=found.rejected, front=found.front,
        infeasible=infeasible, evaluated=found.evaluated, num_candidates=found.num_candidates,
        seconds=time.perf_counter() - started, tariffs=tuple((o.device.name, o.tariff) for o in space.options),
        notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def goal_of(scenario: Scenario) -> tuple[Goal, tuple[str, ...]]:
    """The goal of a scenario, and what was assumed about its traffic."""
    traffic, notes = traffic_of(scenario)
    if percentiles := [o for o in read_objectives(scenario.slo) if o.percent]:
        o = percentiles[0]
        raise ScenarioError(
            f"slo: {o.written!r} asks for a percentile, and the closed form knows means only; "
            f"add --simulate, or write {o.metric}:{o.limit_s * 1e3:.12g} for the mean."
        )
    limits = {f"{metric}_s": limit_s for metric, limit_s in request_limits_s(scenario.slo).items()}
    most = scenario.max_devices or scenario.devices or MOST_DEVICES
    best = "throughput" if scenario.objective == "throughput" or not traffic.request_rate_per_s else "cost"
    return Goal(objectives=Objectives(**limits), traffic=traffic, max_devices=most, best=best), notes


def space_of(scenario: Scenario, parts: Sequence[Parts], max_devices: int) -> Space:
    """What may be tried: everything the scenario does not fix."""
    options = [
        Option(
            device=p.device, engine=p.engine, tariff=tariff_of(p.device, scenario.usd_per_hour, scenario.electricity)
        )
        for p in parts
    ]
    fixed = Fixed(
        tp=scenario.tp or 0, pp=scenario.pp or 0, dp=scenario.dp or 0, ep=scenario.ep or 0, cp=scenario.cp or 1,
        weights=_formats(scenario.weights), kv=_formats(scenario.kv),
        activations=get_format(scenario.activations).name if scenario.activations else "",
        max_num_seqs=scenario.max_num_seqs or 0, max_num_batched_tokens=scenario.max_num_batched_tokens or 0,
        max_model_tokens=scenario.max_model_len or 0, memory_utilization_frac=scenario.gpu_memory_utilization or 0.0,
    )  # fmt: skip
    return Space(model=parts[0].model, options=options, max_devices=max_devices, fixed=fixed)


def _formats(text: str | None) -> tuple[str, ...]:
    return tuple(get_format(word).name for word in words(text)) if text else ()


def _scope_notes(scenario: Scenario, goal: Goal) -> tuple[str, ...]:
    notes: list[str] = []
    if scenario.max_devices is None and scenario.devices is None:
        notes.append(f"max_devices: {goal.max_devices} (one usual server)")
    if goal.objectives.limits():
        notes.append("objectives are held against mean latencies; percentiles take the simulator")
    for name in ("batch", "concurrency"):
        if getattr(scenario, name) is not None:
            notes.append(f"{name}: not used; a plan finds its own")
    if not goal.traffic.request_rate_per_s:
        notes.append("no rate is given: plans are ranked by the most output tokens a second and device")
    return tuple(notes)


def _empty(scenario: Scenario, goal: Goal) -> str:
    degrees = ", ".join(f"{d} = {n}" for d in ("tp", "pp", "dp", "ep") if (n := getattr(scenario, d)))
    wanted = degrees or "these degrees"
    return f"No layout of at most {goal.max_devices} devices has {wanted}; raise max_devices, or free one."
