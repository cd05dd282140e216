"""Sensitivity of a plan: its fleet kept, one input changed at a time, and the ratio at which it falls short."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from orrery.base.cost import Interval
from orrery.planner.curve import Curve
from orrery.planner.detail import detail
from orrery.planner.goal import Goal
from orrery.planner.plan import Operation, Plan
from orrery.planner.search import curve_of, operate, refined
from orrery.planner.space import Candidate
from orrery.reports.changes import Changes, Figures, between_ends, end, farthest, swung
from orrery.reports.report import Input, Metric, Sensitivity
from orrery.reports.words import format_value
from orrery.serving.estimate import estimate

UNBOUNDED = 1_000_000
"""Devices that a plan may grow to where an input asks for more than it has."""

MEMORY_STEP_FRAC = 0.05
"""Change of engines' memory limits in the test."""

OWN_ERROR = "the model's error (80 %)"

LONG_RUN = 1000
"""Rounds of a closed loop after which its start no longer shows in the means."""

TOLD = (
    "Each bar re-answers the question with one input changed and all others kept. The plan stays as it is; where it "
    "no longer carries the load, replicas are added and paid for.",
    "Every point is the closed form again (means in a steady state), not a simulation.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedPlan:
    """A plan to be asked again: its candidate and replicas stay."""

    goal: Goal
    plan: Plan

    @property
    def operation(self) -> Operation:
        """The plan at work."""
        return self.plan.operation

    def changed_goal(self, changes: Changes, most_devices: int = UNBOUNDED) -> tuple[Goal, Candidate]:
        """The goal and the candidate with ``changes``."""
        traffic, limits, candidate = self.goal.traffic, dict(self.goal.objectives.limits()), self.operation.candidate
        lengths = {k: v for k, v in changes.items() if k in ("input_tokens", "output_tokens", "request_rate_per_s")}
        limits |= {k: v for k, v in changes.items() if k in ("ttft_s", "tpot_s", "e2el_s")}
        tariff, deployment = candidate.option.tariff, candidate.deployment
        if "usd_per_hour" in changes:
            tariff = replace(tariff, usd_per_hour=changes["usd_per_hour"])
        if "electricity_usd_per_kwh" in changes:
            tariff = replace(tariff, electricity_usd_per_kwh=changes["electricity_usd_per_kwh"])
        if "memory_utilization_frac" in changes:
            deployment = replace(deployment, memory_utilization_frac=changes["memory_utilization_frac"])
        goal = replace(
            self.goal,
            traffic=replace(traffic, **lengths),
            max_devices=most_devices,
            objectives=replace(self.goal.objectives, **limits),
        )
        option = replace(candidate.option, tariff=tariff)
        return goal, replace(candidate, option=option, deployment=deployment)

    def operated(self, changes: Changes, most_devices: int = UNBOUNDED) -> tuple[Goal, Operation] | str:
        """The plan with ``changes``, or what it lacks."""
        goal, candidate = self.changed_goal(changes, most_devices)
        curve = curve_of(goal, candidate)
        if not isinstance(curve, Curve):
            return str(curve.infeasible)
        least = self.operation.replicas
        if not goal.traffic.request_rate_per_s:  # as many requests as can be served: the fleet is what it is
            goal = replace(goal, max_devices=self.operation.num_devices)
        found = operate(goal, refined(goal, curve), least)
        return (goal, found) if isinstance(found, Operation) else str(found.infeasible)

    def figures(self, changes: Changes) -> Mapping[str, float] | str:
        """The figures of the report with ``changes``."""
        found = self.operated(changes)
        if isinstance(found, str):
            return found
        goal, operation = found
        return figures_of(detail(goal, operation), self.operation.replicas)

    def holds(self, changes: Changes) -> bool:
        """Whether the plan as it is still carries the traffic within the objectives."""
        return not isinstance(self.operated(changes, self.operation.num_devices), str)


def figures_of(plan: Plan, replicas: int) -> dict[str, float]:
    """Figures that inputs move: dollars, latencies, and the rate that ``replicas`` carry."""
    o = plan.operation
    found = {
        "usd_per_million_tokens": plan.usd_per_million_tokens,
        "ttft_s": o.ttft_s,
        "tpot_s": o.tpot_s,
        "highest_requests_per_s": o.highest_requests_per_s / o.replicas * replicas,
        "num_devices": float(o.num_devices),
    }
    return {name: value for name, value in found.items() if value is not None}


METRICS = (
    Metric(name="usd_per_million_tokens", label="Dollars per million output tokens", unit="usd"),
    Metric(name="highest_requests_per_s", label="Max request rate of the plan", unit="requests_per_s"),
    Metric(name="ttft_s", label="Time to first token", unit="s"),
    Metric(name="tpot_s", label="Time per output token", unit="s"),
    Metric(name="num_devices", label="Devices", unit=""),
)


def capacity_interval(fixed: FixedPlan) -> Interval | None:
    """Around the highest rate: what measured runs of full batches say of such predictions."""
    o, traffic = fixed.operation, fixed.goal.traffic
    concurrency = max(1, round(o.max_concurrency))
    full = estimate(o.deployment, traffic.closed(concurrency, LONG_RUN * concurrency))
    around = getattr(full, "intervals", {}).get("output_tokens_per_s")
    rate: float = getattr(full, "output_tokens_per_s", 0.0)
    return around.scaled(o.highest_requests_per_s / rate) if around and rate else None


def sensitivity(fixed: FixedPlan) -> Sensitivity:
    """Every input in turn, the model's own error, and the tipping points."""
    base = figures_of(fixed.plan, fixed.operation.replicas)
    inputs = [*_inputs(fixed, fixed.figures), *_own_error(fixed, base)]
    metrics = tuple(m for m in METRICS if m.name in base)
    return Sensitivity(summary=TOLD, metrics=metrics, base=base, inputs=tuple(inputs), flips=tuple(flips(fixed)))


def _inputs(fixed: FixedPlan, figures: Figures) -> list[Input]:
    traffic, tariff = fixed.goal.traffic, fixed.operation.candidate.option.tariff
    deployment = fixed.operation.deployment
    out: list[Input] = []
    if traffic.request_rate_per_s:
        out.append(swung("arrivals", "request_rate_per_s", traffic.request_rate_per_s, "requests_per_s", figures))
    out.append(swung("input length", "input_tokens", traffic.input_tokens, "tokens", figures))
    if traffic.output_tokens > 1:
        out.append(swung("output length", "output_tokens", traffic.output_tokens, "tokens", figures))
    if tariff.usd_per_hour:
        out.append(swung("price of a device-hour", "usd_per_hour", tariff.usd_per_hour, "usd", figures))
    if tariff.electricity_usd_per_kwh:
        out.append(
            swung("electricity, per kWh", "electricity_usd_per_kwh", tariff.electricity_usd_per_kwh, "usd", figures)
        )
    frac = deployment.memory_utilization_frac or deployment.engine.memory_utilization_frac
    ends = (frac - MEMORY_STEP_FRAC, min(frac + MEMORY_STEP_FRAC, 0.98))
    out.append(between_ends("memory that the engine may fill", "memory_utilization_frac", ends, "frac", figures))
    for name, limit_s in fixed.goal.objectives.limits():
        out.append(swung(f"objective on {name.removesuffix('_s').upper()}", name, limit_s, "s", figures))
    return out


def _own_error(fixed: FixedPlan, base: Mapping[str, float]) -> list[Input]:
    """The 80 % interval of each figure as one bar: slow end, fast end."""
    around = fixed.plan.intervals
    carried = capacity_interval(fixed)
    if carried is None or not {"ttft_s", "tpot_s"} & around.keys():
        return []
    out: list[dict[str, float]] = []
    for is_slow in (True, False):
        found = {n: around[n].high_80 if is_slow else around[n].low_80 for n in ("ttft_s", "tpot_s") if n in around}
        top = carried.low_80 if is_slow else carried.high_80
        out.append(found | {"highest_requests_per_s": top} | fleet_at(fixed, top / base["highest_requests_per_s"]))
    slow, fast = out
    name = OWN_ERROR
    return [Input(name=name, low=end("slow end", lambda _: slow, {}), high=end("fast end", lambda _: fast, {}))]


def fleet_at(fixed: FixedPlan, speed_ratio: float) -> dict[str, float]:
    """Devices and dollars if every replica carries so many times what was predicted."""
    o, plan = fixed.operation, fixed.plan
    rate, each = fixed.goal.traffic.request_rate_per_s, o.highest_requests_per_s / o.replicas * speed_ratio
    replicas = max(o.replicas, -int(-(rate / each - 1e-9) // 1)) if rate else o.replicas
    devices = replicas * o.deployment.layout.num_devices
    tokens = plan.output_tokens_per_s if rate else plan.output_tokens_per_s * speed_ratio
    usd = o.candidate.option.tariff.usd_per_million(devices, plan.power_w * replicas / o.replicas, tokens)
    return {"num_devices": float(devices)} | ({} if usd is None else {"usd_per_million_tokens": usd})


def flips(fixed: FixedPlan) -> list[str]:
    """Range of each input within which the plan as it is suffices."""
    traffic, out = fixed.goal.traffic, list[str]()
    rate = traffic.request_rate_per_s
    if rate:
        top = fixed.operation.highest_requests_per_s
        out.append(
            f"It carries {format_value(top, 'requests_per_s')}, {_times(top / rate)} what arrives; beyond that it "
            "needs more replicas."
        )
    for key, name, value in (
        ("input_tokens", "Prompts", traffic.input_tokens),
        ("output_tokens", "Answers", traffic.output_tokens),
    ):
        found = farthest(lambda ratio, key=key, value=value: fixed.holds({key: value * ratio}))
        out.append(_length_said(name, value, found, bool(rate)))
    for name, limit_s in fixed.goal.objectives.limits():
        found = farthest(lambda ratio, name=name, limit_s=limit_s: fixed.holds({name: limit_s / ratio}))
        what = name.removesuffix("_s").upper()
        if found is None:
            out.append(f"The objective on {what} ({format_value(limit_s, 's')}) could be 64 times as strict.")
        elif found > 1.0:
            out.append(
                f"The objective on {what} ({format_value(limit_s, 's')}) could be as strict as "
                f"{format_value(limit_s / found, 's')}; below that this plan no longer meets it."
            )
        else:
            out.append(f"The objective on {what} ({format_value(limit_s, 's')}) is met with nothing to spare.")
    return out


def _length_said(name: str, value: float, ratio: float | None, has_rate: bool) -> str:
    mean, load = format_value(round(value), "tokens"), " at the same arrivals" if has_rate else ""
    if ratio is None:
        return f"{name} may be 64 times as long as {mean} (the mean){load}; nothing ends it before that."
    return (
        f"{name} may be up to {format_value(round(value * ratio), 'tokens')} long on average{load} ({_times(ratio)} "
        f"{mean}); beyond that the plan falls short."
    )


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio < inf else "any multiple"
