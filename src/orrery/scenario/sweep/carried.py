"""Cost of an old optimum on a new device: the best settings of one device, carried to another, and tuned again.

Settings that do not run on the new device are carried as far as they go: to the largest ones there of which none is
above the old ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from orrery.base.errors import ScenarioError

Values = tuple[Any, ...]
DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOver:
    """One device's best settings on another one, beside that one's own best; figures of ``metric``, more is better."""

    old_device: str
    new_device: str
    metric: str
    old_best: Mapping[str, Any]
    carried_to: Mapping[str, Any] | None  # None: nothing of it runs there
    new_best: Mapping[str, Any]
    figures: tuple[float | None, float]  # carried over, and tuned again

    @property
    def carried(self) -> float | None:
        """Figure of the old best settings on the new device; None where nothing of them runs."""
        return self.figures[0]

    @property
    def best(self) -> float:
        """Figure of the new device's own best settings."""
        return self.figures[1]

    @property
    def retuning_gain_frac(self) -> float | None:
        """Gain of tuning again."""
        return None if not self.carried else self.best / self.carried - 1.0

    def to_json(self) -> dict[str, Any]:
        """By name."""
        names = ("old_device", "new_device", "metric", "carried", "best", "retuning_gain_frac")
        settings = {
            n: dict(found) if (found := getattr(self, n)) is not None else None for n in ("old_best", "new_best")
        }
        reached = None if self.carried_to is None else dict(self.carried_to)
        return {n: getattr(self, n) for n in names} | settings | {"carried_to": reached}


def carry(old: Mapping[Values, float], new: Mapping[Values, float]) -> Values | None:
    """The new device's settings that come nearest to the old best ones from below; None where none do."""
    best = max(old, key=old.__getitem__)
    if best in new:
        return best
    below = [values for values in new if all(_at_most(a, b) for a, b in zip(values, best, strict=True))]
    return max(below, key=_numbers, default=None)


def _at_most(value: Any, limit: Any) -> bool:
    """Whether a number is no larger; names have to be the same."""
    return value <= limit if isinstance(limit, int | float) and isinstance(value, int | float) else value == limit


def _numbers(values: Values) -> tuple[float, ...]:
    """Numbers to rank settings by: of the devices first, as they are swept last."""
    return tuple(float(v) for v in reversed(values) if isinstance(v, int | float))


def carried_over(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[CarriedOver, ...]:
    """Every device's optimum on every other one; ``names`` are the settings that vary."""
    if DEVICE not in names or len(names) < 2:
        raise ScenarioError(
            "carry_over: compares the best settings of devices; sweep device=a,b and something to tune, such as "
            "max_num_seqs=8,32,128."
        )
    rest, metric = [n for n in names if n != DEVICE], _metric(runs)
    found: dict[str, dict[Values, float]] = {}
    for run in runs:
        value = _figure(run, metric)
        if value is not None:
            varied = run["varied"]
            found.setdefault(str(varied[DEVICE]), {})[tuple(varied[n] for n in rest)] = value
    return tuple(_pairs(found, rest, metric))


def _pairs(found: Mapping[str, Mapping[Values, float]], rest: Sequence[str], metric: str) -> Iterator[CarriedOver]:
    for old, new in permutations(found, 2):
        best, own = (max(found[d], key=found[d].__getitem__) for d in (old, new))
        there = carry(found[old], found[new])
        yield CarriedOver(
            old_device=old,
            new_device=new,
            metric=metric,
            old_best=dict(zip(rest, best, strict=True)),
            carried_to=None if there is None else dict(zip(rest, there, strict=True)),
            new_best=dict(zip(rest, own, strict=True)),
            figures=(None if there is None else found[new][there], found[new][own]),
        )


def _metric(runs: Sequence[Mapping[str, Any]]) -> str:
    """The metric to be maximised: the capacity that was searched for, requests in time, or output tokens a second."""
    if any("capacity" in run for run in runs):
        return "capacity_requests_per_s"
    return "request_goodput" if any(run.get("request_goodput") is not None for run in runs) else "output_throughput"


def _figure(run: Mapping[str, Any], metric: str) -> float | None:
    value = (
        run["capacity"]["requests_per_s"] if metric.startswith("capacity") and "capacity" in run else run.get(metric)
    )
    return None if value is None else float(value)
