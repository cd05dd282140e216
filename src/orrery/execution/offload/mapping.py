"""The mapping game: which tensors of a program live in a small fast memory, and at which address.

A tensor takes ``size_bytes`` from operation ``start`` to ``end`` (both included). Two tensors that live at the same
time may not share addresses: in the plane of address and time their rectangles do not overlap. The prize is the time
that the program saves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.program import Program, solved

SLOW = -1.0
"""The offset of a tensor that stays in the slow memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A rectangle that may be put into the fast memory, and what that saves."""

    name: str
    size_bytes: float
    start: int
    end: int
    saved_s: float

    def __post_init__(self) -> None:
        if self.size_bytes <= 0 or self.end < self.start:
            raise ScenarioError(
                f"{self.name}: {self.size_bytes:g} bytes from {self.start} to {self.end}; write a size above 0 and an "
                "end not before the start."
            )

    @property
    def lifetime(self) -> int:
        """Operations that it lives through."""
        return self.end - self.start + 1

    def meets(self, other: "Tensor") -> bool:
        """Whether both live at some operation."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingGame:
    """A program's tensors, its time with all of them in the slow memory, and the fast memory's capacity."""

    capacity_bytes: float
    base_s: float
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMapping:
    """Where every tensor of a game lies."""

    game: MappingGame
    offset_bytes: tuple[float, ...]  # ``SLOW`` where it stays outside

    @property
    def saved_s(self) -> float:
        """Time saved by all tensors in the fast memory together."""
        return sum(t.saved_s for t, at in zip(self.game.tensors, self.offset_bytes, strict=True) if at != SLOW)

    @property
    def time_s(self) -> float:
        """The program's time."""
        return self.game.base_s - self.saved_s

    @property
    def is_legal(self) -> bool:
        """Whether all fits inside the capacity, and no two rectangles overlap."""
        placed = [(t, at) for t, at in zip(self.game.tensors, self.offset_bytes, strict=True) if at != SLOW]
        inside = all(at >= 0.0 and at + t.size_bytes <= self.game.capacity_bytes for t, at in placed)
        return inside and not any(
            a.meets(b) and x < y + b.size_bytes and y < x + a.size_bytes
            for i, (a, x) in enumerate(placed)
            for b, y in placed[:i]
        )


Placed = tuple[tuple[int, float], ...]
"""Tensors that are in the fast memory, by their index, and their offsets."""


def free_offsets(game: MappingGame, placed: Iterable[tuple[int, float]], index: int) -> tuple[float, ...]:
    """Offsets at which a tensor fits snugly: on the floor or on top of a neighbour, lowest first."""
    tensor = game.tensors[index]
    busy = sorted((at, at + game.tensors[i].size_bytes) for i, at in placed if game.tensors[i].meets(tensor))
    found: list[float] = []
    floor_bytes = 0.0
    for low, high in [*busy, (game.capacity_bytes, game.capacity_bytes)]:
        if low - floor_bytes >= tensor.size_bytes:
            found.append(floor_bytes)
        floor_bytes = max(floor_bytes, high)
    return tuple(found)


def by_worth(game: MappingGame) -> list[int]:
    """Tensors that save anything, by what they save for the area they take, best first."""
    worth = [(t.saved_s / (t.size_bytes * t.lifetime), i) for i, t in enumerate(game.tensors) if t.saved_s > 0.0]
    return [i for _, i in sorted(worth, key=lambda x: (-x[0], x[1]))]


def fill(game: MappingGame, placed: Placed, order: Iterable[int]) -> Placed:
    """Put tensors in, in order, each at the lowest offset where it fits; leave out what does not."""
    retained = list(placed)
    for i in order:
        if offsets := free_offsets(game, retained, i):
            retained.append((i, offsets[0]))
    return tuple(retained)


def mapping_of(game: MappingGame, placed: Placed) -> MemoryMapping:
    """The whole mapping, tensors that are not placed staying in the slow memory."""
    at = dict(placed)
    return MemoryMapping(game=game, offset_bytes=tuple(at.get(i, SLOW) for i in range(len(game.tensors))))


def worth_of(game: MappingGame, placed: Placed) -> float:
    """Time saved."""
    return sum(game.tensors[i].saved_s for i, _ in placed)


def most_saved_s(game: MappingGame) -> float:
    """Time that no mapping saves more than: all that lives at an operation fits the capacity, at whatever address.

    An integer program over the tensors; a mapping with addresses may fall short of it.
    """
    worth = [t for t in game.tensors if t.saved_s > 0.0 and t.size_bytes <= game.capacity_bytes]
    if not worth:
        return 0.0
    moments = sorted({t.start for t in worth})
    lives = np.array([[t.size_bytes * (t.start <= at <= t.end) for t in worth] for at in moments])
    scale_s = max(t.saved_s for t in worth)
    found = solved(
        Program(
            cost=-np.array([t.saved_s / scale_s for t in worth]),
            matrix=lives / game.capacity_bytes,
            row_low=np.full(len(moments), -np.inf),
            row_high=np.ones(len(moments)),
            most=np.ones(len(worth)),
            is_whole=np.ones(len(worth), dtype=np.bool_),
        ),
        gap_frac=1e-4,
    )
    return float(sum(t.saved_s for t in worth)) if found is None else -float(found.bound) * scale_s
