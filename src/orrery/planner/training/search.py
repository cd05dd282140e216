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
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import Units, units
from orrery.planner.pareto import least, reached
from orrery.planner.training.space import Family, FixedSettings, choice_keys, families, layouts
from orrery.planner.workers import HERE, Workers, each
from orrery.training.allowed import broken
from orrery.training.columns import Columns, choice_from, choice_rows, choices
from orrery.training.memory import room_bytes
from orrery.training.schedules.registry import SCHEDULES
from orrery.training.step import Bounds, Steps, bounds_of, step_of
from orrery.training.worth import energy_bound_j, energy_j

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

HEAD = 16
"""Families that are searched first: what is found in them rules out nearly all that any others would."""

PART = 8
"""Families of a part."""

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

    def take(self, part: "TrainingSearchResult") -> None:
        """Add the counts of another part of the space."""
        self.rejected += part.rejected
        self.evaluated += part.evaluated
        self.ruled_out += part.ruled_out
        self.num_layouts += part.num_layouts


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
    workers: Workers = HERE,
) -> TrainingSearchResult:
    """The ``count`` fastest layouts that fit, the front of time, memory and energy, and what fell out and why.

    ``prunes`` False costs everything: the same answer, more slowly. Layouts that may take less than ``rank_s`` are all
    costed, and counted. The first families are searched one after the other; then ``workers`` take parts that know
    what was found in these, so that whoever works on them comes to the same.
    """
    question = _Question(pickle.dumps((job, fixed)), prunes)
    order = list(_promising(question.families))
    parts = [order[i : i + PART] for i in range(HEAD, len(order), PART)]
    tell = progress or _quiet
    out, keep = TrainingSearchResult(), _Keep(count, rank_s * (1.0 - SAME_TIME))
    for done, family in enumerate(order[:HEAD]):
        tell(done, len(order))
        question.search(family, keep, out)
    begun = keep.order
    for found, part in each(
        _searched, (question, keep), parts, workers, lambda n: tell(min(HEAD + n * PART, len(order)), len(order)), 1
    ):
        keep.take(found, begun)
        out.take(part)
    tell(len(order), len(order))
    out.best, out.front, out.num_faster = keep.best(), keep.front(), keep.num_faster
    return out


def _quiet(done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class _Question:
    """A search as workers are given it: a job and what is fixed, packed."""

    packed: bytes
    prunes: bool

    @property
    def families(self) -> list[Family]:
        """All families of the space."""
        return _space(self.packed).every

    def search(self, family: Family, keep: "_Keep", out: TrainingSearchResult) -> None:
        """Search one family, and add its finds."""
        space = _space(self.packed)
        x = layouts(space.job, space.fixed, family, space.schedules)
        out.num_layouts += len(x)
        _family(space.job, family, x, room_bytes(space.job), keep, out, self.prunes, space)


def _searched(known: tuple[_Question, "_Keep"], part: Sequence[Family]) -> tuple["_Keep", TrainingSearchResult]:
    """Some families, after those that are known."""
    question, keep = known
    found, out = keep.copied(), TrainingSearchResult()
    for family in part:
        question.search(family, found, out)
    return found, out


@lru_cache(maxsize=1)
def _space(packed: bytes) -> "_Shared":
    """The space of a question, whose layers are costed once in every process."""
    return _Shared(*pickle.loads(packed))


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

    def __init__(self, job: TrainingJob, fixed: FixedSettings) -> None:
        self.job, self.fixed, self.every = job, fixed, list(families(job, fixed))
        self.schedules = (fixed.schedule,) if fixed.schedule else fixed.schedules or tuple(SCHEDULES.techniques)
        self.members: dict[int, dict[tuple[int, ...], int]] = {}  # by ep: choices and their places
        self.found: dict[int, Units] = {}
        for family in self.every:
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
        self._meet([self._point(steps, int(rows[i]), values[i]) for i in fresh], values[fresh])

    def _meet(self, points: list[Point], values: Floats) -> None:
        """The front of what was there and of more points."""
        both, together = self.points + points, np.concatenate([self.values, values])
        front_rows = least(together)
        self.points, self.values = [both[int(i)] for i in front_rows], together[front_rows]

    def copied(self) -> "_Keep":
        """A copy that is added to apart; it counts the faster ones anew."""
        found = _Keep(self.count, self.rank_s)
        found.heap, found.order = list(self.heap), self.order
        found.points, found.values = list(self.points), self.values
        return found

    def take(self, part: "_Keep", begun: int) -> None:
        """Add the finds of a copy that was made when ``order`` was ``begun``, in their order."""
        self.num_faster += part.num_faster
        for _, order, point in sorted(part.heap, key=lambda entry: -entry[1]):
            if order < begun:
                self._push(point)
        fresh = np.flatnonzero(~reached(part.values, self.values))
        self._meet([part.points[int(i)] for i in fresh], part.values[fresh])

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
