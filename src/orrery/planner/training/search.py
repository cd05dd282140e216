"""Exhaustive search of training layouts, with pruning that provably changes nothing.

Every layout of the space is in one of three states at the end: costed in full; ruled out by a bound; or senseless. Two
bounds are used, all cheaper than the full cost and never above it::

    memory >= state on the fullest device (weights, gradients, optimizer) + one micro-batch's least activations
    time   >= m x (the slowest stage's products, attention and streams)
    energy >= what the model's operations alone draw over that time (power rises with work and time)

A layout is ruled out only when the memory bound exceeds the device, or when a layout that was costed already fits, is
at or below all three bounds: then it is on no front and, if the fastest are faster too, not best.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import Units, units
from orrery.planner.pareto import least, reached
from orrery.planner.training.space import Family, FixedSettings, choice_keys, families, layouts
from orrery.training.allowed import broken
from orrery.training.columns import Columns, choice_from, choice_rows, choices
from orrery.training.memory import room_bytes
from orrery.training.schedules.registry import SCHEDULES
from orrery.training.step import Bounds, Steps, bounds_of, step_of
from orrery.training.worth import energy_bound_j, energy_j

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CHUNK = 1 << 15
"""Layouts costed at once: columns of this length stay in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRejection:
    """Effect of one constraint on one family of layouts, and the layout that came closest."""

    family: Family
    constraint: str  # a rule of ``training.allowed``, or "memory"
    layouts: int
    need_bytes: float = 0.0  # of the layout that needs least
    have_bytes: float = 0.0
    nearest: TrainingLayout | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One costed layout that fits."""

    layout: TrainingLayout
    time_s: float
    memory_bytes: float
    energy_j: float  # of one step, all devices


@dataclass(slots=True, kw_only=True)
class TrainingSearchResult:
    """Result of a search."""

    best: list[Point] = field(default_factory=list[Point])  # the fastest, best first
    front: list[Point] = field(default_factory=list[Point])  # nothing is as fast, as small and as frugal
    rejected: list[ConstraintRejection] = field(default_factory=list[ConstraintRejection])
    evaluated: int = 0  # costed in full
    ruled_out: int = 0  # by a bound
    num_layouts: int = 0  # of the space
    num_faster: int = 0  # that fit and take less time than the one that was asked about


SAME_TIME = 1e-9
"""Relative difference below which two layouts take the same time."""

Progress = Callable[[int, int], None]
"""(families done, families in all)"""


def search(
    job: TrainingJob,
    fixed: FixedSettings,
    *,
    count: int = 10,
    prunes: bool = True,
    progress: Progress | None = None,
    rank_s: float = 0.0,
) -> TrainingSearchResult:
    """The ``count`` fastest layouts that fit, the front of time, memory and energy, and what fell out and why.

    ``prunes`` False costs everything: the same answer, more slowly. Layouts that may take less than ``rank_s`` are all
    costed, and counted.
    """
    every = list(families(job, fixed))
    names = (fixed.schedule,) if fixed.schedule else fixed.schedules or tuple(SCHEDULES.techniques)
    out, keep = TrainingSearchResult(), _Keep(count, rank_s * (1.0 - SAME_TIME))
    have = room_bytes(job)
    shared = _Shared(job, fixed, every)
    for done, family in enumerate(_promising(every)):
        if progress:
            progress(done, len(every))
        x = layouts(job, fixed, family, names)
        out.num_layouts += len(x)
        _family(job, family, x, have, keep, out, prunes, shared)
    if progress:
        progress(len(every), len(every))
    out.best, out.front, out.num_faster = keep.best(), keep.front(), keep.num_faster
    return out


def _promising(every: Iterable[Family]) -> Iterator[Family]:
    """Families in the order of what usually works, so that good layouts rule out others early."""
    yield from sorted(every, key=lambda f: (f.cp, f.tp > 8, f.pp, -f.tp))


def _family(
    job: TrainingJob,
    family: Family,
    x: Columns,
    have: float,
    keep: "_Keep",
    out: TrainingSearchResult,
    prunes: bool,
    shared: "_Shared",
) -> None:
    """One family: rules, bounds, costs."""
    bad = np.zeros(len(x), dtype=np.bool_)
    for name, mask in broken(job, x).items():
        if number := int(mask.sum()):
            out.rejected.append(ConstraintRejection(family=family, constraint=name, layouts=number))
            bad |= mask
    x = x.only(~bad)
    if not len(x):
        return
    found, which = shared.units(family, x)
    missed = _Missed()
    for start in range(0, len(x), CHUNK):
        rows = slice(start, start + CHUNK)
        part, index = x.only(rows), which[rows]
        if prunes:
            bounds: Bounds = bounds_of(job, part, (found, index))
            fits = bounds.memory_bytes <= have
            worth = fits & ~keep.beats(bounds, energy_bound_j(job, part, bounds.time_s))
            missed.add(part, bounds.memory_bytes, fits)
            out.ruled_out += int((~worth).sum())
            part, index = part.only(worth), index[worth]
            if not len(part):
                continue
        steps = step_of(job, part, (found, index))
        out.evaluated += len(part)
        memory = steps.memory_bytes
        fits = memory <= have
        missed.add(part, memory, fits)
        keep.add(steps, fits)
    if missed.count:
        out.rejected.append(
            ConstraintRejection(
                family=family,
                constraint="memory",
                layouts=missed.count,
                need_bytes=missed.need_bytes,
                have_bytes=have,
                nearest=missed.nearest,
            )
        )


class _Shared:
    """Costs of layers, computed once for all families that deal out experts alike: they do not depend on stages."""

    def __init__(self, job: TrainingJob, fixed: FixedSettings, every: Iterable[Family]) -> None:
        self.job = job
        self.members: dict[int, dict[tuple[int, ...], int]] = {}  # by ep: choices and their places
        self.found: dict[int, Units] = {}
        for family in every:
            known = self.members.setdefault(family.ep, {})
            for keys in choice_keys(job, fixed, family):
                known.setdefault(keys, len(known))

    def units(self, family: Family, x: Columns) -> tuple[Units, NDArray[np.int64]]:
        """Units of the family's group, and the place of each layout's choice among them."""
        known = self.members[family.ep]
        if family.ep not in self.found:
            self.found[family.ep] = units(self.job, choice_from(known))
        choice, which = choices(x)
        places = np.array([known[keys] for keys in choice_rows(choice)], dtype=np.int64)
        return self.found[family.ep], places[which]


@dataclass(slots=True)
class _Missed:
    """Layouts of a family that do not fit: how many, and the one that needs least."""

    count: int = 0
    need_bytes: float = np.inf
    nearest: TrainingLayout | None = None

    def add(self, x: Columns, memory_bytes: Floats, fits: Flags) -> None:
        """Some more layouts."""
        if fits.all():
            return
        self.count += int((~fits).sum())
        row = int(np.argmin(np.where(fits, np.inf, memory_bytes)))
        if memory_bytes[row] < self.need_bytes:
            self.need_bytes, self.nearest = float(memory_bytes[row]), x.layout(row)


class _Keep:
    """The fastest layouts so far, and the front of time, memory and energy."""

    def __init__(self, count: int, rank_s: float = 0.0) -> None:
        self.count, self.rank_s, self.num_faster = count, rank_s, 0
        self.heap: list[tuple[float, int, Point]] = []  # slowest first
        self.order = 0
        self.points: list[Point] = []
        self.values = np.zeros((0, 3))  # of the points, by rising time

    def beats(self, bounds: Bounds, energy_j: Floats) -> Flags:
        """Which bounded layouts can be neither on the front nor among the fastest."""
        out = np.zeros(bounds.time_s.size, dtype=np.bool_)
        if len(self.heap) < self.count:
            return out
        slow = np.flatnonzero(bounds.time_s >= max(-self.heap[0][0], self.rank_s))
        values = np.stack([bounds.time_s, bounds.memory_bytes, energy_j], axis=1)[slow]
        out[slow] = reached(values, self.values)
        return out

    def add(self, steps: Steps, fits: Flags) -> None:
        """Costed layouts."""
        rows = np.flatnonzero(fits)
        if not rows.size:
            return
        values = np.stack([steps.time_s, steps.memory_bytes, energy_j(steps)], axis=1)[rows]
        self.num_faster += int((values[:, 0] < self.rank_s).sum())
        limit = -self.heap[0][0] if len(self.heap) == self.count else np.inf
        fastest = np.argsort(values[:, 0], kind="stable")[: self.count]
        for i in fastest[values[fastest, 0] < limit]:
            self._push(self._point(steps, int(rows[i]), values[i]))
        fresh = np.flatnonzero(~reached(values, self.values))
        fresh = fresh[least(values[fresh])]
        both = self.points + [self._point(steps, int(rows[i]), values[i]) for i in fresh]
        together = np.concatenate([self.values, values[fresh]])
        front_rows = least(together)
        self.points, self.values = [both[int(i)] for i in front_rows], together[front_rows]

    def _point(self, steps: Steps, row: int, values: Floats) -> Point:
        time_s, memory_bytes, energy = (float(v) for v in values)
        return Point(layout=steps.columns.layout(row), time_s=time_s, memory_bytes=memory_bytes, energy_j=energy)

    def _push(self, point: Point) -> None:
        self.order -= 1
        entry = (-point.time_s, self.order, point)
        if len(self.heap) < self.count:
            heapq.heappush(self.heap, entry)
        elif entry > self.heap[0]:
            heapq.heapreplace(self.heap, entry)

    def best(self) -> list[Point]:
        """The fastest, best first."""
        return [p for _, _, p in sorted(self.heap, key=lambda e: (-e[0], -e[1]))]

    def front(self) -> list[Point]:
        """By rising time."""
        return self.points
