"""Cost of one answer that takes many calls, for each number of samples, beside one plain call."""

from dataclasses import dataclass, fields
from typing import Any

from orrery.base.cost import Interval
from orrery.reasoning.choice import ShapeKnobs
from orrery.reasoning.cost import CallCost
from orrery.reasoning.frontier import frontier
from orrery.scenario.answer import to_json
from orrery.scenario.answer_studies import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCount:
    """One number of samples; every figure is of one answer."""

    num_samples: int | None  # None: the shape has no samples
    num_calls: float
    prompt_tokens: float  # of all calls, of them ``shared_tokens`` read from the cache instead of computed
    shared_tokens: float
    answer_tokens: float  # written, by whichever model
    time_s: float  # until the answer is there
    offline_s: float  # spent before the question came
    kv_peak_bytes: float  # cache that the largest group of calls asks for
    num_waves: int  # in which that group runs, as the cache or the engine's limit allow no more at once
    energy_j: float
    usd: float | None  # None: no price is known
    bound_by: str
    time_interval: Interval
    calls: tuple[CallCost, ...]  # of all answers that one replica makes at once
    coverage_frac: float | None = None  # a right answer is among the samples
    right_frac: float | None = None  # the answer is right

    @property
    def usd_per_right(self) -> float | None:
        """Dollars for an answer that is right."""
        return self.usd / self.right_frac if self.usd is not None and self.right_frac else None

    def to_json(self) -> dict[str, Any]:
        """The figures by name; SI units."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("calls", "time_interval")}
        return to_json(plain | {"usd_per_right": self.usd_per_right, "intervals": {"time_s": self.time_interval}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One way to spend: a shape with so many samples, what it costs, and how often it is right."""

    shape: str
    way: SampleCount

    def to_json(self) -> dict[str, Any]:
        """Its figures by name."""
        way = self.way
        return {
            "reasoning": self.shape,
            "num_samples": way.num_samples,
            "usd": way.usd,
            "right_frac": way.right_frac,
            "coverage_frac": way.coverage_frac,
            "time_s": way.time_s,
            "energy_j": way.energy_j,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Ways within a budget, the best first; of each shape its best."""

    usd: float
    ranked: tuple[Spent, ...]
    cheapest_usd: float  # of all ways: what the budget must reach

    @property
    def best(self) -> Spent | None:
        """The way that is right most often; None where the budget pays for none."""
        return self.ranked[0] if self.ranked else None

    def to_json(self) -> dict[str, Any]:
        """The budget, and the ways by rank."""
        return to_json(
            {"budget_usd": self.usd, "cheapest_usd": self.cheapest_usd, "ranked": [s.to_json() for s in self.ranked]}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned:
    """An answer under a shape of calls: one plain call, and a way for each number of samples."""

    shape: str
    knobs: ShapeKnobs  # of the last way
    num_questions: int  # asked at once
    one_call: SampleCount
    ways: tuple[SampleCount, ...]  # by rising samples
    notes: tuple[str, ...]
    studies: tuple[Study, ...] = ()
    budget: Budget | None = None

    @property
    def worth(self) -> str:
        """Value by which ways are compared: their accuracy, or their coverage where the choice of an answer is not
        known.
        """
        return "right_frac" if all(way.right_frac is not None for way in self.ways) else "coverage_frac"

    @property
    def front(self) -> tuple[SampleCount, ...]:
        """One call and all ways, less those that something cheaper reaches; empty where nothing is known of success."""
        ways = (self.one_call, *self.ways)
        if any(getattr(way, self.worth) is None for way in ways):
            return ()
        return tuple(frontier(ways, spent, lambda way: getattr(way, self.worth)))

    def to_json(self) -> dict[str, Any]:
        """The figures of the way with the most samples, and all ways under ``ways``."""
        front = self.front
        rows = [way.to_json() | ({"is_on_front": way in front} if front else {}) for way in self.ways]
        return {
            "reasoning": self.shape,
            "knobs": to_json(self.knobs),
            "num_questions": self.num_questions,
            **rows[-1],
            "one_call": self.one_call.to_json(),
            "ways": rows,
        } | (
            ({"studies": {s.name: s.to_json() for s in self.studies}} if self.studies else {})
            | ({"budget": self.budget.to_json()} if self.budget else {})
        )


def spent(way: SampleCount) -> float:
    """Cost of a way: dollars, or joules where no price is known."""
    return way.energy_j if way.usd is None else way.usd
