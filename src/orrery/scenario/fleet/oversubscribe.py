"""The most replicas that fit under a power budget: by rated draws, and with clocks that each rule may lower.

The fleet is simulated with ever more replicas, each with its part of the traffic, with the rule and without any. A row
is good where no reading is above the budget and requests are late by no more than is tolerated, by priority.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.power.oversubscribe import Fit, Tolerance, largest, late_frac
from orrery.fleet.power.row import Drawn
from orrery.fleet.service.result import FleetRun
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.read import FleetInputs, knobs_written
from orrery.scenario.fleet.traffic import mean_rate
from orrery.scenario.power_row import MAX_MORE_FRAC, MAX_SERVERS, TOLERANCE, power_cap_name

OWN = ("oversubscribe", "power_late", "replicas", "rate", "power_cap", "power_cap_knob")
"""Settings that every try has its own of."""

Serve = Callable[[Mapping[str, Any]], FleetAnswer | InfeasibleAnswer]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleFit:
    """The most replicas that are good by one rule."""

    cap: str
    fit: Fit
    late: Mapping[str, float]  # of requests, by priority and percentile, against the same replicas without caps
    limit_w: float

    def to_json(self) -> dict[str, Any]:
        """The fit as plain data."""
        drawn = self.fit.drawn.drawn_w
        return {
            "power_cap": self.cap,
            "replicas": self.fit.num_servers,
            "rated_replicas": self.fit.num_rated,
            "more_frac": self.fit.more_frac,
            "mean_drawn_frac": float(drawn.mean()) / self.limit_w,
            "p99_drawn_frac": float(np.quantile(drawn, 0.99)) / self.limit_w,
            "peak_drawn_frac": float(drawn.max()) / self.limit_w,
            **{f"{name}_late_frac": share for name, share in self.late.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Oversubscription:
    """Replicas under a budget by every rule, the chosen one first."""

    power_budget_w: float
    rated_w: float  # of one replica
    fits: tuple[RuleFit, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        return to_json(
            {
                "power_budget_w": self.power_budget_w,
                "rated_w": self.rated_w,
                "rated_replicas": self.fits[0].fit.num_rated,
                "oversubscribe": [f.to_json() for f in self.fits],
                "notes": list(self.notes),
            }
        )


def oversubscribed(
    inputs: FleetInputs, settings: Mapping[str, Any], serve: Serve
) -> Oversubscription | InfeasibleAnswer:
    """The most replicas of a fleet's pool under its power budget."""
    budget, replicas = _checked(inputs)
    rate, _ = mean_rate(inputs.scenario)
    chosen = power_cap_name(inputs.top.power_cap)
    base = {key: value for key, value in settings.items() if key.replace("-", "_") not in OWN}
    knobs = {"power_cap_knob": list(inputs.top.power_cap_knob)} if inputs.top.power_cap_knob else {}

    @cache
    def drawn(cap: str, count: int) -> Drawn:
        own = {"replicas": count, "rate": rate * count / replicas, "power_cap": cap, **(knobs if cap == chosen else {})}
        answer = serve({**base, **own})
        if isinstance(answer, InfeasibleAnswer):
            raise ScenarioError(f"oversubscribe: {count} replicas: {answer.infeasible}.")
        return _drawn(answer.run)

    first = serve({**base, "replicas": 1, "rate": rate / replicas, "power_cap": "none"})
    if isinstance(first, InfeasibleAnswer):
        return first
    rated_w = first.run.setup.terms[0].rated_power_w
    count = _rated(budget, rated_w)
    tolerance = tolerance_of(inputs.top.power_late)
    fits: list[RuleFit] = []
    for cap in sorted(POWER_CAPS.words, key=lambda word: word != chosen):
        fit = largest(count, partial(drawn, cap), partial(drawn, "none"), tolerance, MAX_MORE_FRAC)
        late = _late(fit.drawn, drawn("none", fit.num_servers))
        fits.append(RuleFit(cap=cap, fit=fit, late=late, limit_w=budget))
    return Oversubscription(power_budget_w=budget, rated_w=rated_w, fits=tuple(fits), notes=first.notes)


def _checked(inputs: FleetInputs) -> tuple[float, int]:
    """The budget, and how many replicas the traffic is for."""
    top = inputs.top
    if top.power_budget_w is None:
        raise ScenarioError("oversubscribe: fits replicas under a budget; write power_budget_w = 260000 beside it.")
    pool, *others = inputs.pools
    if others or inputs.rows or inputs.racks or inputs.has_prefill:
        raise ScenarioError(
            "oversubscribe: is about replicas of one pool under one budget; leave out other pools, replicas for "
            "prompts alone, [[row]] and [[rack]]."
        )
    if inputs.autoscaler:
        raise ScenarioError("oversubscribe: all replicas run all the time; leave out the autoscaler.")
    replicas = pool.scenario.replicas
    if replicas is None:
        raise ScenarioError(
            "oversubscribe: each replica has its part of the traffic; write replicas = 40, for which the rate is."
        )
    return top.power_budget_w, replicas


def _rated(budget: float, rated_w: float) -> int:
    count = int(budget / rated_w * (1.0 + 1e-12))
    if not 1 <= count <= MAX_SERVERS:
        raise ScenarioError(
            f"power_budget_w: {budget:g} W hold {count:,} replicas of {rated_w:g} W; write {rated_w:g} to "
            f"{rated_w * (MAX_SERVERS + 1):g} W."
        )
    return count


def tolerance_of(texts: Iterable[str]) -> Tolerance:
    """How much later requests may be, with what somebody wrote in place of the usual."""
    known = [f.name.removesuffix("_frac") for f in fields(Tolerance)]
    given: dict[str, float] = {}
    for name, text in knobs_written("power_late", texts, "low_p99=0.5").items():
        if name not in known:
            raise ScenarioError(f"power_late: there is no {name!r}; write one of {', '.join(known)}.")
        try:
            given[f"{name}_frac"] = float(text)
        except ValueError:
            raise ScenarioError(f"power_late: {name} = {text!r}; write a part, such as 0.05.") from None
        if not 0.0 <= given[f"{name}_frac"] < np.inf:
            raise ScenarioError(f"power_late: {name} = {text}; write a part from 0, such as 0.05.")
    return replace(TOLERANCE, **given)


def _drawn(run: FleetRun) -> Drawn:
    """Readings of a run, the latencies of requests by the priority of their replicas, and readings above the budget."""
    power = run.power
    if power is None:
        raise ScenarioError("oversubscribe: nothing was metered; write power_budget_w.")
    is_low = power.is_low[power.replica_of_machine[run.outcome.machine.astype(np.int64)]]
    latency_s = np.nan_to_num(run.e2el_s, nan=np.inf)
    whole = power.limits[0]
    return Drawn(
        drawn_w=whole.drawn_w,
        low_s=latency_s[is_low],
        high_s=latency_s[~is_low],
        num_brakes=int((whole.drawn_w > whole.limit.limit_w).sum()),
    )


def _late(found: Drawn, free: Drawn) -> dict[str, float]:
    """How much later requests are than without caps."""
    each = (("low", found.low_s, free.low_s), ("high", found.high_s, free.high_s))
    return {f"{name}_p{p:g}": late_frac(mine, plain, p) for name, mine, plain in each for p in (50.0, 99.0)}
