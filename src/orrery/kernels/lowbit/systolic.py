"""A weight-stationary systolic array whose elements dequantise first, or once a group, and multiply or shift and add.

An array of r x c elements holds r inputs by c outputs of the weights and takes a token a cycle:

    cycles = ceil(k / r) ceil(n / c) (m + r + c - 2)

Arrays are compared on the same silicon: smaller elements make a larger array. Energy is that of the elements, of
reading activations, weights and sums from on-chip memory once a pass, and of moving operands and results off chip once.
MixPE, arXiv 2411.16158; circuits from ``orrery.hardware.gates``.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor, sqrt

from orrery.base.errors import OutOfRange
from orrery.hardware.gates import Circuit, adder, arithmetic, memory_j_per_bit, multiplier, register, shift_adder

SUM_BITS = 32
SCALE_BITS = 8
RESULT_BITS = 16


class Element(StrEnum):
    """Operation of one element of the array on a weight."""

    ELEMENT_SCALED = "element-scaled"  # zero off, times scale, then multiplied at the activations' width
    GROUP_SCALED = "group-scaled"  # code multiplied as it is; sums are scaled at the array's edge
    SHIFT_ADDED = "shift-added"  # the same with shifts and additions for a multiplier


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """A square array of one kind of element and the widths that it takes."""

    element: Element
    weight_bits: int
    activation_bits: int
    side: int  # rows and columns

    def __post_init__(self) -> None:
        if self.side < 1:
            raise OutOfRange(f"an array of {self.side} x {self.side} elements; give it more silicon.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One product on an array."""

    num_cycles: int
    compute_j: float
    on_chip_j: float
    off_chip_j: float

    @property
    def energy_j(self) -> float:
        """All of it."""
        return self.compute_j + self.on_chip_j + self.off_chip_j


def element_circuit(element: Element, weight_bits: int, activation_bits: int) -> Circuit:
    """One element: arithmetic, a running sum, and registers for a weight and a passing activation."""
    held = register(weight_bits + activation_bits + SUM_BITS) + adder(SUM_BITS)
    if element is Element.SHIFT_ADDED:
        return held + shift_adder(weight_bits, activation_bits)
    if element is Element.GROUP_SCALED:
        return held + multiplier(weight_bits, activation_bits)
    # a dequantised weight is as wide as an activation
    return (
        held + adder(weight_bits) + multiplier(weight_bits, SCALE_BITS) + multiplier(activation_bits, activation_bits)
    )


def array_on(area_m2: float, element: Element, weight_bits: int, activation_bits: int) -> Array:
    """The largest square array on so much silicon."""
    each = element_circuit(element, weight_bits, activation_bits).area_m2
    return Array(
        element=element, weight_bits=weight_bits, activation_bits=activation_bits, side=floor(sqrt(area_m2 / each))
    )


def run(m: int, n: int, k: int, array: Array, group_elements: int = 128) -> Run:
    """Activations (m, k) times weights (k, n), which share a scale by ``group_elements`` inputs."""
    passes_k, passes_n = ceil(k / array.side), ceil(n / array.side)
    cycles = passes_k * passes_n * (m + 2 * array.side - 2)
    each = element_circuit(array.element, array.weight_bits, array.activation_bits)
    scalings = 0 if array.element is Element.ELEMENT_SCALED else m * n * ceil(k / group_elements)
    scale = arithmetic("fp16_multiply") + arithmetic("fp16_add")
    a_bits, w_bits, c_bits = m * k * array.activation_bits, n * k * array.weight_bits, m * n
    moved = a_bits * passes_n + w_bits + 2 * c_bits * SUM_BITS * passes_k
    return Run(
        num_cycles=cycles,
        compute_j=m * n * k * each.energy_j + scalings * scale.energy_j,
        on_chip_j=moved * memory_j_per_bit("cache_8_kib"),
        off_chip_j=(a_bits + w_bits + c_bits * RESULT_BITS) * memory_j_per_bit("dram"),
    )
