"""A narrow multi-layer perceptron in one kernel or layer by layer: bytes from memory, and the roof they leave.

Every matrix is ``num_width`` squared, in 16 bits. Fused, a row of activations stays in registers from the first layer
to the last; a group of rows loads each weight matrix once. Layer by layer, each layer loads and stores its activations,
and an activation function that is a kernel of its own does so again; all rows share one load of the matrix. Training
also stores what the backward pass reads, and multiplies activations with gradients in a kernel of its own. Yuan et al.,
arXiv 2403.17607, section III-C; the weights are taken to come from memory, as there.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from orrery.hardware.roofs import Roofs

ELEMENT_BYTES = 2.0

TRAINING_PRODUCTS = 3
"""Products of a layer and step: forward, gradient of the input, gradient of the weights."""

UNFUSED_MOVES = {"inference": 4, "training": 11}
"""Activations that a layer moves when each product and each activation function is a kernel: in and out of both going
forward; back, three of the input's gradient and the activation's, two of the product, two of the weights' gradient."""

UNFUSED_LAUNCHES = {"inference": 2, "training": 5}
"""Kernels of one layer: product and activation; their two backward, and the weights' gradient."""


class Phase(StrEnum):
    """Purpose of a perceptron's run."""

    INFERENCE = "inference"
    FORWARD = "forward"  # of training: what enters each layer is kept
    TRAINING = "training"  # forward and backward


@dataclass(frozen=True, slots=True, kw_only=True)
class Perceptron:
    """``num_matrices`` square matrices of side ``num_width``, one after the other."""

    num_width: int
    num_matrices: int

    def num_products(self, phase: Phase) -> int:
        """Products of one step."""
        return (TRAINING_PRODUCTS if phase is Phase.TRAINING else 1) * self.num_matrices

    def flops(self, phase: Phase) -> float:
        """FLOPs of one row."""
        return 2.0 * self.num_products(phase) * self.num_width**2

    def fused_bytes(self, phase: Phase, num_rows: int, rows_per_load: int) -> float:
        """Bytes moved for some rows, where up to ``rows_per_load`` rows share a load of the weights.

        All phases take the input in and the output out. Training moves what enters each layer five times: out going
        forward, in going back, its gradient out, and both in for the gradient of the weights.
        """
        weights = ceil(num_rows / rows_per_load) * self.num_matrices * self.matrix_bytes
        moves = {Phase.INFERENCE: 0, Phase.FORWARD: 1, Phase.TRAINING: 5}[phase] * self.num_matrices
        passes = 2.0 if phase is Phase.TRAINING else 1.0
        return num_rows * (2.0 + moves) * self.row_bytes + passes * weights

    def unfused_bytes(self, phase: Phase, num_rows: int) -> float:
        """Bytes moved for some rows, layer by layer; they share one load of the weights for each product."""
        moves = UNFUSED_MOVES[phase] * self.num_matrices
        return num_rows * moves * self.row_bytes + self.num_products(phase) * self.matrix_bytes

    def unfused_launches(self, phase: Phase) -> int:
        """Kernels of one step, layer by layer."""
        return UNFUSED_LAUNCHES[phase] * self.num_matrices

    @property
    def row_bytes(self) -> float:
        """The activations of one row between two layers."""
        return ELEMENT_BYTES * self.num_width

    @property
    def matrix_bytes(self) -> float:
        """One matrix, which a group of rows shares in the memory beside a processor."""
        return ELEMENT_BYTES * self.num_width**2

    def spilled_bytes(self, phase: Phase, num_rows: int) -> float:
        """Bytes moved for some rows where a matrix does not fit beside a processor: every layer is a kernel that
        applies its activation function itself, so activations come in and go out once a product, beside its matrix."""
        return self.num_products(phase) * (2.0 * num_rows * self.row_bytes + self.matrix_bytes)


def spilled_s(network: Perceptron, phase: Phase, num_rows: int, roofs: Roofs, launch_s: float) -> float:
    """One step with a kernel a product, each with its activation function."""
    busy_s = roofs.time_s(num_rows * network.flops(phase), network.spilled_bytes(phase, num_rows))
    return max(busy_s, network.num_products(phase) * launch_s)


def fused_s(
    network: Perceptron, phase: Phase, num_rows: int, rows_per_load: int, roofs: Roofs, launch_s: float
) -> float:
    """One step of ``num_rows`` rows in one kernel; the weights' gradients of training are one product a layer."""
    launches = 1 + (network.num_matrices if phase is Phase.TRAINING else 0)
    busy_s = roofs.time_s(num_rows * network.flops(phase), network.fused_bytes(phase, num_rows, rows_per_load))
    return max(busy_s, launches * launch_s)


def unfused_s(network: Perceptron, phase: Phase, num_rows: int, roofs: Roofs, launch_s: float) -> float:
    """One step layer by layer, or the launches of its kernels where the host cannot keep up."""
    busy_s = roofs.time_s(num_rows * network.flops(phase), network.unfused_bytes(phase, num_rows))
    return max(busy_s, network.unfused_launches(phase) * launch_s)
