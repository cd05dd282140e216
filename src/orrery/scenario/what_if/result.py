"""Effect of one technique on one deployment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orrery.scenario.levers.lever import Lever
from orrery.scenario.what_if.break_even import BreakEven
from orrery.scenario.what_if.difference import Difference, gain
from orrery.scenario.what_if.metrics import Metric
from orrery.scenario.what_if.side import Side

Outcome = Literal["makes it fit", "changes", "no effect", "infeasible", "does not apply"]
State = Literal["on", "in use", "default"]


UNSEEN_GAIN = 5e-4
"""Changes below half of the last digit that is shown count as none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WhatIf:
    """A technique in a deployment: both sides, their difference, where it turns, and what must be measured."""

    lever: Lever
    outcome: Outcome
    because: str  # how it was switched, or why it has no effect or does not apply
    command: str  # the plain command of the side with it; the technique's own where nothing was computed
    metric: Metric
    without: Side | None = None
    having: Side | None = None
    difference: Mapping[str, Difference] = field(default_factory=dict[str, Difference])
    break_even: tuple[BreakEven, ...] = ()
    state: State = "on"  # "in use": the deployment asks for it; "default": it has it unasked; "without" is with it off

    @property
    def technique(self) -> str:
        """Its name."""
        return self.lever.name

    @property
    def gain(self) -> float:
        """How much better the metric is with it, as a logarithm; 0 where it does nothing."""
        if self.outcome != "changes" or self.without is None or self.having is None:
            return 0.0
        return gain(self.metric, self.without.figures, self.having.figures) or 0.0

    @property
    def verdict(self) -> str:
        """helps or hurts, or that the metric stays: ``likely`` where the interval leaves out no change, ``may help``
        where it does not; the word alone where no interval is known.
        """
        if self.outcome != "changes":
            return self.outcome
        if abs(self.gain) < UNSEEN_GAIN:
            return "no change"
        found, helps = self.difference.get(self.metric.name), self.gain > 0
        if found is None or found.low_80 is None:
            return "helps" if helps else "hurts"
        if found.is_sure:
            return "likely helps" if helps else "likely hurts"
        return "may help" if helps else "may hurt"

    def to_json(self) -> dict[str, Any]:
        """The shape that scripts rely on."""
        return {
            "technique": self.technique,
            "command": self.command,
            "outcome": self.outcome,
            "state": self.state,
            "verdict": self.verdict,
            "metric": self.metric.name,
            "because": self.because,
            "without": self.without.to_json() if self.without else None,
            "with": self.having.to_json() if self.having else None,
            "difference": {name: d.to_json() for name, d in self.difference.items()},
            "break_even": {b.input: b.to_json() for b in self.break_even} or None,
            "gains": self.lever.gains,
            "costs": self.lever.costs,
            "must_be_measured": list(self.lever.measure),
        }
