"""From which value of an input a technique helps: the range is tried on a coarse grid, and the nearest change halved.

An input is a numeric setting of the deployment: its value x times 1/16 to 16, or for shares 0.05 to 1. What is looked
for is the x nearest to the deployment's own where "better with it" turns into "not better". Where it turns more than
once, that is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from typing import Any

from orrery.base.units import figures
from orrery.scenario.fields import BY_NAME
from orrery.scenario.setting import Setting

Helps = Callable[[float], bool | None]
"""Whether the technique helps at a value of the input; None where one side is infeasible or makes no sense."""

RATIOS = tuple(2.0**k for k in range(-4, 5))
SHARES = tuple(k / 20 for k in range(1, 21))
CLOSE_RATIO = 1.01
"""Halving ends where both ends of the change are as near as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where a technique begins or ceases to help, along one input. ``value`` is None where it never turns."""

    input: str
    at: float  # the deployment's own
    low: float  # of the range that could be tried
    high: float
    value: float | None = None
    helps: str  # "below", "above", "everywhere" or "nowhere"
    turns: int = 0  # how often, over the range

    def __str__(self) -> str:
        """One sentence."""
        name, tried = self.input.replace("_", " "), f"{figures(self.low)} to {figures(self.high)}"
        if self.value is None:
            return f"{name}: it helps {self.helps} from {tried}"
        more = f"; it turns {self.turns} times, this is the nearest" if self.turns > 1 else ""
        return f"{name}: it helps {self.helps} {figures(self.value)} (here {figures(self.at)}; tried {tried}{more})"

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return {
            "value": self.value,
            "helps": self.helps,
            "at": self.at,
            "low": self.low,
            "high": self.high,
            "turns": self.turns,
        }


def break_even(name: str, at: float, helps: Helps) -> BreakEven | None:
    """Along one input; None where fewer than two values can be tried."""
    setting = BY_NAME[name]
    tried = [(x, found) for x in grid(setting, at) if (found := helps(x)) is not None]
    if len(tried) < 2:
        return None
    low, high = tried[0][0], tried[-1][0]
    turns = [(a, b) for a, b in pairwise(tried) if a[1] != b[1]]
    if not turns:
        where = "everywhere" if tried[0][1] else "nowhere"
        return BreakEven(input=name, at=at, low=low, high=high, helps=where)
    before, after = min(turns, key=lambda pair: abs(log(max(_between(pair), 1e-12) / max(at, 1e-12))))
    value = _halved(setting, before[0], after[0], before[1], helps)
    where = "below" if before[1] else "above"
    return BreakEven(input=name, at=at, low=low, high=high, value=value, helps=where, turns=len(turns))


def _between(pair: Sequence[tuple[float, bool]]) -> float:
    return (pair[0][0] * pair[1][0]) ** 0.5


def grid(setting: Setting, at: float) -> tuple[float, ...]:
    """Values that are tried, rising, the deployment's own among them."""
    values = SHARES if setting.kind == "number" and setting.most == 1.0 else tuple(at * ratio for ratio in RATIOS)
    found = {at, *(max(1.0, float(round(v))) if setting.kind == "count" else v for v in values)}
    return tuple(sorted(v for v in found if setting.least <= v <= setting.most and v > 0.0))


def _halved(setting: Setting, low: float, high: float, at_low: bool, helps: Helps) -> float:
    """The value where the answer changes between two that differ: the end of the last part in which it helps."""
    while high / low > CLOSE_RATIO:
        middle = exp((log(low) + log(high)) / 2)
        if setting.kind == "count":
            middle = float(round(middle))
            if middle in (low, high):
                break
        if (found := helps(middle)) is None:
            break
        low, high = (middle, high) if found == at_low else (low, middle)
    return low if at_low else high
