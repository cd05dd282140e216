"""Evolution of networks towards worth and small size, with a first generation that may be filtered by size.

Each generation keeps the half that fewest others beat in both, crosses pairs of them choice by choice, and draws one
choice in so many anew. A filter draws networks of the first generation again until all are small enough, before any of
them is trained; what is bred from small networks tends to stay small [termritthikun-2021-eeea-net].
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.predictors.cells.latency import Floats
from orrery.predictors.cells.space import Cells, Space

MAX_DRAWS = 200
"""Rounds of drawing after which a limit counts as too small for the space."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evolved:
    """Every network that was trained, and the last generation."""

    trained: Cells
    last: Cells


def first_generation(
    space: Space, size: Callable[[Cells], Floats], most_size: float, count: int, rng: np.random.Generator
) -> Cells:
    """Draw ``count`` networks within the size limit; OutOfRange where the space hardly has any."""
    cells = space.draw(count, rng)
    for _ in range(MAX_DRAWS):
        too_large = size(cells) > most_size
        if not too_large.any():
            return cells
        cells[too_large] = space.draw(int(too_large.sum()), rng)
    raise OutOfRange(f"{space.name}: hardly any network is below {most_size:g}; write a higher limit.")


def evolved(
    space: Space,
    worth: Callable[[Cells], Floats],
    size: Callable[[Cells], Floats],
    most_size: float,
    population: int,
    generations: int,
    rng: np.random.Generator,
) -> Evolved:
    """Evolve ``population`` networks over ``generations``, the first included; an infinite limit filters nothing."""
    now = first_generation(space, size, most_size, population, rng)
    trained = [now]
    for _ in range(generations - 1):
        children = _bred(space, now[_ranked(worth(now), size(now))[: population // 2]], population, rng)
        trained.append(children)
        both = np.concatenate([now, children])
        now = both[_ranked(worth(both), size(both))[:population]]
    return Evolved(trained=np.concatenate(trained), last=now)


def _ranked(worth: Floats, size: Floats) -> np.ndarray:
    """Indices, those first that fewest others beat; of equals the worthier."""
    beats = (worth[:, None] >= worth) & (size[:, None] <= size) & ((worth[:, None] > worth) | (size[:, None] < size))
    return np.lexsort((-worth, beats.sum(axis=0)))


def _bred(space: Space, parents: Cells, count: int, rng: np.random.Generator) -> Cells:
    """Pairs crossed choice by choice, and one choice of a network drawn anew on average."""
    pairs = rng.integers(len(parents), size=(2, count))
    children = np.where(rng.random((count, parents.shape[1])) < 0.5, parents[pairs[0]], parents[pairs[1]])
    is_drawn = rng.random(children.shape) < 1.0 / parents.shape[1]
    return np.where(is_drawn, space.draw(count, rng), children)
