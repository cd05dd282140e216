"""Costs with their explanation: a tree whose parts add up and whose leaves are facts."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.sources import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Where the true value is expected to lie: 80 % and 95 % of the time, in the value's own unit."""

    low_80: float
    high_80: float
    low_95: float
    high_95: float
    because: str = ""

    def scaled(self, ratio: float) -> "Interval":
        """The interval of a value that is so many times as large and as sure."""
        return Interval(
            low_80=self.low_80 * ratio,
            high_80=self.high_80 * ratio,
            low_95=self.low_95 * ratio,
            high_95=self.high_95 * ratio,
            because=self.because,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The relative error of a rule, as factors on its answer: truth / prediction at four quantiles."""

    low_80_ratio: float
    high_80_ratio: float
    low_95_ratio: float
    high_95_ratio: float
    because: str = ""

    def around(self, value: float) -> Interval:
        """The interval of this spread around one answer."""
        return Interval(
            low_80=value * self.low_80_ratio,
            high_80=value * self.high_80_ratio,
            low_95=value * self.low_95_ratio,
            high_95=value * self.high_95_ratio,
            because=self.because,
        )

    def inverse(self) -> "Spread":
        """The spread of one over the answer: the ends change places."""
        return Spread(
            low_80_ratio=1.0 / self.high_80_ratio,
            high_80_ratio=1.0 / self.low_80_ratio,
            low_95_ratio=1.0 / self.high_95_ratio,
            high_95_ratio=1.0 / self.low_95_ratio,
            because=self.because,
        )

    def widened(self, factor: float, because: str) -> "Spread":
        """The same spread with every half-width ``factor`` times as wide (in log space)."""
        return Spread(
            low_80_ratio=self.low_80_ratio**factor,
            high_80_ratio=self.high_80_ratio**factor,
            low_95_ratio=self.low_95_ratio**factor,
            high_95_ratio=self.high_95_ratio**factor,
            because=because,
        )

    def moved_out(self, ratio: float, because: str) -> "Spread":
        """The same spread with every end ``ratio`` times further out."""
        return Spread(
            low_80_ratio=self.low_80_ratio / ratio,
            high_80_ratio=self.high_80_ratio * ratio,
            low_95_ratio=self.low_95_ratio / ratio,
            high_95_ratio=self.high_95_ratio * ratio,
            because=because,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One piece of work: its time (total, and the part nothing else hides), energy, operations and bytes.

    ``bound_by`` is the resource that sets the time: ``compute``, ``memory``, ``network``, ``overhead`` or ``host``.
    The time of ``parts`` adds up to the whole (tested); ``because`` holds the facts that entered here.
    """

    name: str
    time_s: float
    exposed_s: float
    energy_j: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    bound_by: str = ""
    parts: tuple["Cost", ...] = ()
    because: tuple[Fact, ...] = ()


def total(name: str, parts: Sequence[Cost], because: Sequence[Fact] = ()) -> Cost:
    """The parts one after the other; bound by whatever takes most of the exposed time."""
    by: dict[str, float] = {}
    for part in parts:
        by[part.bound_by] = by.get(part.bound_by, 0.0) + part.exposed_s
    return Cost(
        name=name,
        time_s=sum(p.time_s for p in parts),
        exposed_s=sum(p.exposed_s for p in parts),
        energy_j=sum(p.energy_j for p in parts),
        flops=sum(p.flops for p in parts),
        bytes=sum(p.bytes for p in parts),
        bound_by=max(by, key=by.__getitem__) if by else "",
        parts=tuple(parts),
        because=tuple(because),
    )
