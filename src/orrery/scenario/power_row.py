"""How many replicas of a plan fit under a power budget: by rated draws, and with clocks that may be lowered.

Batches arrive at every replica at random, a day's swing pressed into half an hour; the row's draw is read every so
often and a rule lowers clocks. Phases are those of the deployment and traffic of the plan; hosts draw beside devices.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.power.oversubscribe import Fit, Tolerance, largest_row
from orrery.fleet.power.phases import Phases, phases
from orrery.fleet.power.row import Row
from orrery.planner.plan import Plan
from orrery.scenario.answer import to_json
from orrery.scenario.schema import Scenario

DEFAULT_CAP = "two-thresholds"
BUSY = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of a replica's time that are busy at the peak, for the curve."""

TOLERANCE = Tolerance(low_p50_frac=0.05, low_p99_frac=0.5, high_p50_frac=0.01, high_p99_frac=0.05)
RUN_S, TICK_S, READING_S, DELAY_S = 1800.0, 1.0, 2.0, 40.0
PEAK_TO_TROUGH_RATIO, LOW_PRIORITY_FRAC, PEAK_BUSY_FRAC = 3.0, 0.5, 0.8
MAX_MORE_FRAC, MAX_SERVERS = 1.5, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A server's batch, and its power besides its devices."""

    sequences_ratio: float  # at once, a mean
    input_tokens: float
    output_tokens: float
    host_w: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFit:
    """The replicas that fit under a budget by one rule, at one busy share."""

    cap: str
    busy_frac: float
    fit: Fit
    limit_w: float

    def to_json(self) -> dict[str, Any]:
        """The fit as plain data."""
        drawn = self.fit.drawn.drawn_w
        return {
            "power_cap": self.cap,
            "busy_frac": self.busy_frac,
            "replicas": self.fit.num_servers,
            "rated_replicas": self.fit.num_rated,
            "more_frac": self.fit.more_frac,
            "mean_drawn_frac": float(drawn.mean()) / self.limit_w,
            "peak_drawn_frac": float(drawn.max()) / self.limit_w,
            "brakes": self.fit.drawn.num_brakes,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerRow:
    """The replicas under a budget: every rule at the usual busy share, and one rule over busy shares."""

    power_budget_w: float
    rated_w: float  # of one replica
    caps: tuple[RowFit, ...]
    curve: tuple[RowFit, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The answer as plain data."""
        return to_json(
            {
                "power_budget_w": self.power_budget_w,
                "rated_w": self.rated_w,
                "caps": [f.to_json() for f in self.caps],
                "curve": [f.to_json() for f in self.curve],
                "notes": self.notes,
            }
        )


def at_clocks(deployment: Deployment, batch: Batch) -> Callable[[float], Phases]:
    """Return what a server does and draws at each clock."""

    @cache
    def at_clock(clock_ratio: float) -> Phases:
        found = phases(
            deployment, batch.sequences_ratio, batch.input_tokens, batch.output_tokens, batch.host_w, clock_ratio
        )
        if isinstance(found, Infeasible):
            raise OutOfRange(f"{found.what}: needs {found.need:g}, has {found.have:g} {found.unit}.")
        return found

    return at_clock


def row_fit(deployment: Deployment, batch: Batch, row: Row, cap: str) -> RowFit:
    """Return the largest row under its limit by one rule."""
    technique = POWER_CAPS.get(cap)
    chosen = technique.knobs()
    fit = largest_row(
        row,
        at_clocks(deployment, batch),
        lambda reading: technique.rule(reading, chosen),
        TOLERANCE,
        MAX_MORE_FRAC,
    )
    return RowFit(cap=cap, busy_frac=row.busy_frac, fit=fit, limit_w=row.limit_w)


def power_cap_name(word: str | None) -> str:
    """The rule that a setting names, as a setting writes it; the usual one where it names none."""
    return POWER_CAPS.get(word or DEFAULT_CAP).written


def power_row_of(scenario: Scenario, plan: Plan) -> PowerRow:
    """Return how many replicas of a plan fit under the scenario's power budget."""
    budget, o = scenario.power_budget_w, plan.operation
    if budget is None:
        raise ScenarioError("power_cap: is for a power budget; write power_budget_w too.")
    cap = power_cap_name(scenario.power_cap)
    deployment = o.deployment
    device, count = deployment.cluster.device, deployment.layout.num_devices
    host_w = device.host_power_w * count
    rated = count * device.power_limit_w + host_w
    servers = int(budget // rated)
    if not 1 <= servers <= MAX_SERVERS:
        low, high = rated, rated * (MAX_SERVERS + 1)
        raise ScenarioError(
            f"power_budget_w: {budget:g} W hold {servers:,} replicas of {rated:g} W; write {low:g} to {high:g} W."
        )
    prompts = plan.total_tokens_per_s - plan.output_tokens_per_s
    batch = Batch(
        sequences_ratio=max(1.0, float(int(o.concurrency))),
        input_tokens=prompts / o.requests_per_s,
        output_tokens=max(2.0, plan.output_tokens_per_s / o.requests_per_s),
        host_w=host_w,
    )
    row = Row(
        num_servers=servers,
        limit_w=budget,
        busy_frac=PEAK_BUSY_FRAC,
        peak_to_trough_ratio=PEAK_TO_TROUGH_RATIO,
        tick_s=TICK_S,
        run_s=RUN_S,
        low_priority_frac=LOW_PRIORITY_FRAC,
        reading_s=READING_S,
        delay_s=DELAY_S,
        seed=scenario.seed or 0,
    )
    notes = [
        f"power: half of the replicas may wait, peak {PEAK_TO_TROUGH_RATIO:g} times the trough, clocks follow after "
        f"{DELAY_S:g} s (assumed)",
        "power: one row of whole batches; orrery fleet simulates every request behind it, and racks and rows with "
        "limits of their own (--power-budget-w with --oversubscribe, [[row]], [[rack]])",
    ]
    if not host_w:
        notes.append(f"power: what the host of {device.name} draws is not known; devices alone are counted")
    return PowerRow(
        power_budget_w=budget,
        rated_w=rated,
        caps=tuple(row_fit(deployment, batch, row, name) for name in POWER_CAPS.words),
        curve=tuple(row_fit(deployment, batch, replace(row, busy_frac=busy), cap) for busy in BUSY),
        notes=tuple(notes),
    )
