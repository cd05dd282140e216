"""A narrow multi-layer perceptron in one kernel or layer by layer: bytes from memory, and the roof they leave.

Every matrix is ``num_width`` squared, in 16 bits. Fused, a row of activations stays in registers from the first layer
to the last; a group of rows loads each weight matrix once. Layer by layer, each layer loads and stores its activations,
and an activation function that is a kernel of its own does so again. Training also stores what the backward pass reads,
and multiplies activations with gradients in a kernel of its own. Yuan et al., arXiv 2403.17607, section III-C; the
weights are taken to come from memory, as there.
"""

from dataclasses import dataclass
from enum import StrEnum

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

    def flops(self, phase: Phase) -> float:
        """FLOPs of one row."""
        products = TRAINING_PRODUCTS if phase is Phase.TRAINING else 1
        return 2.0 * products * self.num_matrices * self.num_width**2

    def fused_bytes(self, phase: Phase, rows_per_load: int) -> float:
        """Bytes moved for one row, where ``rows_per_load`` rows share a load of the weights.

        All phases take the input in and the output out. Training moves what enters each layer five times: out going
        forward, in going back, its gradient out, and both in for the gradient of the weights.
        """
        row, layers = ELEMENT_BYTES * self.num_width, self.num_matrices
        weights = layers * ELEMENT_BYTES * self.num_width**2 / rows_per_load
        if phase is Phase.INFERENCE:
            return 2.0 * row + weights
        if phase is Phase.FORWARD:
            return (2.0 + layers) * row + weights
        return (2.0 + 5.0 * layers) * row + 2.0 * weights

    def unfused_bytes(self, phase: Phase) -> float:
        """Bytes moved for one row, layer by layer; weights are shared by all rows and do not count."""
        return UNFUSED_MOVES[phase] * self.num_matrices * ELEMENT_BYTES * self.num_width

    def unfused_launches(self, phase: Phase) -> int:
        """Kernels of one step, layer by layer."""
        return UNFUSED_LAUNCHES[phase] * self.num_matrices

    @property
    def matrix_bytes(self) -> float:
        """One matrix, which a group of rows shares in the memory beside a processor."""
        return ELEMENT_BYTES * self.num_width**2

    def spilled_bytes(self, phase: Phase) -> float:
        """Bytes moved for one row where a matrix does not fit beside a processor: every layer is a kernel that applies
        its activation function itself, so activations come in and go out once a product."""
        products = TRAINING_PRODUCTS if phase is Phase.TRAINING else 1
        return 2.0 * products * self.num_matrices * ELEMENT_BYTES * self.num_width


def spilled_s(network: Perceptron, phase: Phase, num_rows: int, roofs: Roofs, launch_s: float) -> float:
    """One step with a kernel a product, each with its activation function."""
    products = TRAINING_PRODUCTS if phase is Phase.TRAINING else 1
    busy_s = roofs.time_s(num_rows * network.flops(phase), num_rows * network.spilled_bytes(phase))
    return max(busy_s, products * network.num_matrices * launch_s)


def fused_s(
    network: Perceptron, phase: Phase, num_rows: int, rows_per_load: int, roofs: Roofs, launch_s: float
) -> float:
    """One step of ``num_rows`` rows in one kernel; the weights' gradients of training are one product a layer."""
    launches = 1 + (network.num_matrices if phase is Phase.TRAINING else 0)
    busy_s = roofs.time_s(num_rows * network.flops(phase), num_rows * network.fused_bytes(phase, rows_per_load))
    return max(busy_s, launches * launch_s)


def unfused_s(network: Perceptron, phase: Phase, num_rows: int, roofs: Roofs, launch_s: float) -> float:
    """One step layer by layer, or the launches of its kernels where the host cannot keep up."""
    busy_s = roofs.time_s(num_rows * network.flops(phase), num_rows * network.unfused_bytes(phase))
    return max(busy_s, network.unfused_launches(phase) * launch_s)
