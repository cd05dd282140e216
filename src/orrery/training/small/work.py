"""The kernels of one training step of a perceptron, and what it keeps in memory, for each learning rule.

All numbers are 32-bit. A linear layer with ``a`` inputs and ``b`` outputs takes a product of 2 n a b flops forward for
n points, one for its weights' gradient, and one to pass the gradient on, which only a chain of layers needs. Adam reads
weight, gradient and two moments and writes all but the gradient. [kingma-2015]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from orrery.base.errors import ScenarioError
from orrery.kernels.ops import Elementwise, Gemm

WORD_BYTES, ADAM_WORDS, TRAINED_WORDS = 4.0, 7, 4
"""Bytes of a number; words that an update moves; and words held per trained weight: weight, gradient, two moments."""

ADD_BYTES = 6.0
"""Bytes of the element-wise addition, by which all element-wise work is timed, for an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of the perceptron and of a batch."""

    inputs: int
    hidden: tuple[int, ...]
    num_classes: int
    batch: int

    def __post_init__(self) -> None:
        if min(self.inputs, self.num_classes, self.batch, *self.hidden, 1) < 1 or not self.hidden:
            raise ScenarioError(f"sizes: {self}; write at least one hidden layer and sizes from 1.")

    @property
    def hidden_layers(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of every hidden layer."""
        return list(pairwise((self.inputs, *self.hidden)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepWork:
    """One step: its kernels in their order, and the memory that it needs."""

    ops: tuple[Gemm | Elementwise, ...]
    activation_bytes: float  # kept until the last gradient that reads them
    state_bytes: float  # weights of the whole network; gradients and moments of what is being trained

    @property
    def num_launches(self) -> int:
        """Kernels that the host starts."""
        return len(self.ops)


def forward(points: int, shape: tuple[int, int]) -> Iterator[Gemm | Elementwise]:
    """A hidden layer with its activation."""
    yield Gemm(m=points, n=shape[1], k=shape[0], format="fp32")
    yield moved(2.0 * points * shape[1])


def readout(points: int, shape: tuple[int, int]) -> Iterator[Gemm | Elementwise]:
    """Scores and their loss, which leaves the scores' gradient."""
    yield Gemm(m=points, n=shape[1], k=shape[0], format="fp32")
    yield moved(2.0 * points * shape[1])


def weight_gradient(points: int, shape: tuple[int, int]) -> Gemm:
    """inputs^T outgoing."""
    return Gemm(m=shape[0], n=shape[1], k=points, format="fp32")


def input_gradient(points: int, shape: tuple[int, int]) -> Iterator[Gemm | Elementwise]:
    """outgoing weights^T, and the activation's mask."""
    yield Gemm(m=points, n=shape[0], k=shape[1], format="fp32")
    yield moved(3.0 * points * shape[0])


def update(shapes: list[tuple[int, int]]) -> Elementwise:
    """Adam on those layers, biases left out; one kernel."""
    return moved(ADAM_WORDS * float(elements(shapes)))


def elements(shapes: list[tuple[int, int]]) -> int:
    """Weights of some layers."""
    return sum(a * b for a, b in shapes)


def moved(words: float) -> Elementwise:
    """Element-wise work that reads and writes so many 32-bit words."""
    return Elementwise(kind="add", tokens=max(1, round(words * WORD_BYTES / ADD_BYTES)), width=1)


def state_bytes(all_shapes: list[tuple[int, int]], trained: list[tuple[int, int]]) -> float:
    """Weights of all, gradients and moments of what is trained."""
    return WORD_BYTES * (elements(all_shapes) + (TRAINED_WORDS - 1) * elements(trained))
