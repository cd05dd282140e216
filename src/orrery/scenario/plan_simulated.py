"""Plans held against a simulation of their traffic: percentiles in place of means, and replicas where they are needed.

The closed form names the best plans by means; each is then served its traffic step by step, with as many replicas as it
takes until the objectives hold, and the plans are ranked anew.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from orrery.base.units import percent
from orrery.execution.memory import Infeasible
from orrery.execution.speculation import of_head
from orrery.planner.budget import weight_of
from orrery.planner.detail import detail, limited
from orrery.planner.goal import Goal
from orrery.planner.plan import Operation, Plan
from orrery.planner.search import ranking, with_replicas
from orrery.scenario.capacity import PROBE_REQUESTS, ROUNDS, WARMUP_FRAC
from orrery.scenario.knobs import read_knobs
from orrery.scenario.plan import IN_FULL, searched_for
from orrery.scenario.plan_answer import PlanAnswer, nothing_works
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import Scenario, merged, read_scenario, refuse_foreign
from orrery.scenario.simulate import SimulatedAnswer, answer_of, warm_up
from orrery.serving.capacity import is_sustained
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate as run

BATCHES = 4
"""How often as many plans again are tried where none of the best meets SLO."""

TRAFFIC = (
    "model",
    "device",
    "input_tokens",
    "output_tokens",
    "input_tokens_std",
    "output_tokens_std",
    "trace",
    "max_model_len",
    "usd_per_hour",
    "device_usd_per_hour",
    "electricity",
    "slo",
    "attainment",
    "seed",
    "rate",
)
"""Settings of the scenario that a simulated plan takes over; the rest is the plan's."""

LONG = (
    "timeline",
    "latency_curves",
    "goodput_by_slo_scale",
    "settings",
    "deployment",
    "notes",
    "date",
    "counters",
    "endpoint_type",
    "backend",
    "label",
    "model_id",
    "tokenizer_id",
    "burstiness",
)
"""Keys of a simulated answer that a plan does not repeat."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedPlan:
    """A plan and the run that it was held against."""

    plan: Plan
    operation: Operation
    answer: SimulatedAnswer
    is_sustained: bool
    num_added: int  # replicas beyond what the closed form thought enough

    @property
    def is_met(self) -> bool:
        """Whether the objectives hold and the queue does not grow."""
        return self.is_sustained and self.answer.attained.is_met

    def to_json(self) -> dict[str, Any]:
        """The figures of the run, under the names of ``orrery simulate --json``."""
        found = {key: value for key, value in self.answer.to_json().items() if key not in LONG}
        ours = {"is_met": self.is_met, "is_sustained": self.is_sustained, "num_added_replicas": self.num_added}
        return ours | found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedPlans:
    """The planner's answer with its best plans simulated, in their new order."""

    answer: PlanAnswer
    simulated: tuple[SimulatedPlan, ...]  # one for each of the answer's plans

    def to_json(self) -> dict[str, Any]:
        """The planner's answer, each plan with ``simulated``."""
        found = self.answer.to_json()
        pairs = zip(found["plans"], self.simulated, strict=True)
        return found | {"plans": [plan | {"simulated": one.to_json()} for plan, one in pairs]}


def plan_simulated(
    scenario: Scenario | None = None,
    /,
    *,
    count: int = IN_FULL,
    patience: AbstractContextManager[object] | None = None,
    on_plan: Callable[[int, int], None] = lambda done, total: None,
    **settings: Any,
) -> SimulatedPlans:
    """The best ways to serve a model, the best few simulated on their traffic and ranked by what came out.

    Settings are those of a scenario file; given beside a scenario they override it.
    """
    inputs = merged(scenario, settings)
    refuse_foreign("plan", settings)
    searched = searched_for(inputs, is_simulated=True)
    operations, goal = searched.found.plans, searched.goal
    if not operations:
        return SimulatedPlans(answer=searched.answer((), nothing_works(searched.found.rejected)), simulated=())
    with patience or nullcontext():
        warm_up(_service(inputs, operations[0]))
    tried: list[SimulatedPlan] = []
    for first in range(0, BATCHES * count, count):
        batch = operations[first : first + count]
        for number, operation in enumerate(batch, first):
            on_plan(number, first + len(batch))
            if (found := _enough(inputs, goal, operation)) is not None:
                tried.append(found)
        if any(one.is_met for one in tried):
            break
    better = ranking(goal)
    ranked = sorted(tried, key=lambda one: (not one.is_met, *better(one.operation)))[:count]
    plans = [one.plan for one in ranked]
    infeasible = None if ranked and ranked[0].is_met else _nothing_holds(goal, ranked)
    notes = (*searched.notes, *_notes(ranked))
    answer = replace(searched.answer(plans, infeasible), notes=tuple(dict.fromkeys(notes)))
    return SimulatedPlans(answer=answer, simulated=tuple(ranked))


def _enough(scenario: Scenario, goal: Goal, operation: Operation) -> SimulatedPlan | None:
    """The plan with the fewest replicas that hold the objectives; as it is where even the most do not."""
    first = _simulated(scenario, goal, operation, 0)
    most = goal.budget.most(weight_of(operation.candidate.option, operation.deployment.layout.num_devices))
    if first is None or first.is_met or not goal.traffic.request_rate_per_s or most <= operation.replicas:
        return first
    enough: SimulatedPlan | None = None
    low, high = operation.replicas, operation.replicas + 1  # low does not hold
    while high > low and (enough is None or high - low > 1):
        tried = high if enough is None else (low + high) // 2
        found = _simulated(scenario, goal, with_replicas(goal, operation, tried), tried - operation.replicas)
        if found is not None and found.is_met:
            enough, high = found, tried
        elif enough is None:
            low, high = tried, min(most, 2 * tried)
        else:
            low = tried
    return enough or first


def _simulated(scenario: Scenario, goal: Goal, operation: Operation, num_added: int) -> SimulatedPlan | None:
    """One plan on its traffic; None where not one request fits."""
    inputs = _traffic(scenario, goal, operation)
    service, requests = _service(inputs, operation), requests_for(inputs)
    found = run(service, requests, concurrency=inputs.concurrency or 0, seed=inputs.seed or 0)
    if isinstance(found, Infeasible):
        return None
    answer = answer_of(inputs, service, found, requests.notes, WARMUP_FRAC)
    sustained = inputs.concurrency is not None or inputs.users is not None or is_sustained(found)
    return SimulatedPlan(
        plan=detail(goal, operation),
        operation=operation,
        answer=replace(answer, seconds=1.0),
        is_sustained=sustained,
        num_added=num_added,
    )


def _service(scenario: Scenario, operation: Operation) -> Service:
    """The service of a plan: its replicas, and the policy and overlap that are asked for."""
    deployment, knobs = limited(operation), read_knobs(scenario.knob)
    return Service(
        pools=(Pool(deployment=deployment, replicas=operation.replicas),),
        policy=scenario.policy or "",
        policy_knobs=knobs["policy"],
        overlap=scenario.overlap or "sequential",
        overlap_knobs=knobs["overlap"],
        speculation=of_head(deployment),
    )


def _traffic(scenario: Scenario, goal: Goal, operation: Operation) -> Scenario:
    """The plan's traffic as a scenario of a run: at the demanded rate, or with the batches kept full."""
    traffic, rate = goal.traffic, goal.traffic.request_rate_per_s
    settings = {key: value for key, value in scenario.written().items() if key in TRAFFIC}
    if not rate or scenario.input_tokens or scenario.output_tokens:  # lengths that are stated go before a trace's
        settings.pop("trace", None)
        settings |= {"input_tokens": round(traffic.input_tokens), "output_tokens": round(traffic.output_tokens)}
    in_flight = max(1, round(operation.concurrency * operation.replicas))
    arrivals = {"rate": rate} if rate else {"concurrency": in_flight}
    if scenario.users is not None:
        arrivals = {"users": scenario.users, "think_s": traffic.think_s}
    least = None if "trace" in settings else max(PROBE_REQUESTS, ceil(ROUNDS * in_flight))
    return read_scenario(settings | arrivals | {"num_requests": scenario.num_requests or least})


def _nothing_holds(goal: Goal, tried: Sequence[SimulatedPlan]) -> Infeasible | None:
    """The missed objectives of the best simulated plan."""
    if not tried:
        return None
    found = tried[0].answer.attained
    change = f"Use more than {goal.max_devices} devices (--max-devices), or loosen the objective."
    for one in found.percentiles:
        if one.limit.name == found.worst and not one.is_met:
            return Infeasible(
                what=f"{one.limit.name} in the simulation of the best plan",
                need=one.limit.limit_s,
                have=one.value_s,
                unit="s",
                smallest_change=change,
            )
    if found.is_met:
        rate = goal.traffic.request_rate_per_s
        served = tried[0].answer.summary.requests_per_s
        return Infeasible(
            what="requests served in the simulation of the best plan",
            need=rate,
            have=served,
            unit="requests/s",
            smallest_change=change,
        )
    return Infeasible(
        what=f"share of the requests in time in the simulation of the best plan ({found.worst} is missed most)",
        need=found.needed_frac,
        have=found.attained_frac or 0.0,
        unit="of 1",
        smallest_change=change,
    )


def _notes(ranked: Sequence[SimulatedPlan]) -> tuple[str, ...]:
    if not ranked:
        return ()
    found = ranked[0].answer.attained
    notes = [
        f"simulated: {ranked[0].answer.simulated.requests.count} requests, the first {percent(WARMUP_FRAC)} left out"
    ]
    if found.percentiles:
        text = ", ".join(one.limit.name for one in found.percentiles)
        notes.append(f"{text}: held against the simulation; the closed form searched for means below the limit")
    if found.attained_frac is not None:
        notes.append(f"attainment: {percent(found.needed_frac)} of the simulated requests must meet the objectives")
    return tuple(notes)
