"""One layer's training step on a cluster: forward, gradient of the weights, gradient of the input, as products.

A convolution's inputs are laid out window by window first; the gradients turn one operand, and with several lanes every
product needs its second operand turned too, so that products of one result lie side by side.
"""

from dataclasses import dataclass

from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.matmul import Product, copy_cycles, cycles, depthwise_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayer:
    """A convolution (a fully connected layer has one position and one tap) on one input."""

    positions: int
    taps: int
    inputs: int
    outputs: int
    is_depthwise: bool = False
    is_first: bool = False  # nobody needs its input's gradient

    @property
    def num_macs(self) -> int:
        """Multiply-adds of a step: the forward pass, and as many for each gradient."""
        forward = self.positions * self.taps * self.outputs * (1 if self.is_depthwise else self.inputs)
        return forward * (2 if self.is_first else 3)


def step_cycles(layer: ClusterLayer, cores: Cores, lanes: int) -> float:
    """All passes of one layer."""
    passes = 2 if layer.is_first else 3
    if layer.is_depthwise:
        return passes * depthwise_cycles(layer.positions * layer.outputs, layer.taps, cores)
    window = layer.taps * layer.inputs
    products = [
        Product(m=layer.outputs, n=layer.positions, k=window),
        Product(m=layer.outputs, n=window, k=layer.positions),
    ]
    if not layer.is_first:
        products.append(Product(m=layer.inputs, n=layer.positions, k=layer.taps * layer.outputs))
    return sum(cycles(p, cores, lanes) + _shaping(p, layer, cores, lanes) for p in products)


def _shaping(product: Product, layer: ClusterLayer, cores: Cores, lanes: int) -> float:
    """Windows laid out where there are several taps, or a second operand turned for several lanes, number by number.

    Windows begin at any pixel, so numbers that share a word in one need not in the next.
    """
    return copy_cycles(product.n * product.k, cores) if layer.taps > 1 or lanes > 1 else 0.0
