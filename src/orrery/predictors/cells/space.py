"""Spaces of networks: a few choices among blocks, and a route that says which blocks a network launches in turn."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.predictors.cells.kernels import Block

Cells = NDArray[np.int64]
"""Networks, a line of choices each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A step of a route that depends on a choice: one block for each of its alternatives."""

    choice: int
    blocks: tuple[Block, ...]


Route = tuple[Block | Chosen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Choices of a space, and the networks that they give."""

    name: str
    num_alternatives: tuple[int, ...]  # of every choice
    first_column: tuple[int, ...]  # where its alternatives begin in an encoded line; choices may share columns
    route: Callable[[int], Route]  # by images at once

    @property
    def num_columns(self) -> int:
        """Number of columns of an encoded line."""
        return max(first + count for first, count in zip(self.first_column, self.num_alternatives, strict=True))

    def draw(self, count: int, rng: np.random.Generator) -> Cells:
        """Networks drawn evenly."""
        return rng.integers(np.array(self.num_alternatives), size=(count, len(self.num_alternatives)))

    def encode(self, cells: Cells) -> NDArray[np.float32]:
        """How often each alternative is chosen, in one line a network."""
        lines = np.zeros((len(cells), self.num_columns), np.float32)
        for choice, first in enumerate(self.first_column):
            np.add.at(lines, (np.arange(len(cells)), first + cells[:, choice]), 1.0)
        return lines
