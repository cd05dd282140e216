"""Kernels of convolutional networks in FP32: products, and passes over tensors.

A convolution is an implicit product; a depthwise one is a pass that reads its input once for every tap, as plain
kernels do. Norms, rectifiers, sums and concatenations are passes of their own, as in eager execution.
"""

from dataclasses import dataclass

ELEMENT_BYTES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A product m x n x k, or (m = 0) a pass that moves bytes; ``flops`` count a multiply-add as two."""

    m: int = 0
    n: int = 0
    k: int = 0
    moved_bytes: float = 0.0
    flops: float = 0.0
    num_parameters: int = 0


Block = tuple[Kernel, ...]
"""Kernels that are launched one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A tensor: so many images of so many channels and pixels a side."""

    batch: int
    channels: int
    side: int

    @property
    def elements(self) -> int:
        """Numbers in it."""
        return self.batch * self.channels * self.side**2


def one_pass(words: float) -> Kernel:
    """Build a kernel that reads or writes ``words`` numbers."""
    return Kernel(moved_bytes=words * ELEMENT_BYTES)


def each(place: Place) -> Kernel:
    """A pass that reads a tensor and writes one like it."""
    return one_pass(2 * place.elements)


def product(to: Place, inputs: int, taps: int = 1) -> Kernel:
    """A convolution as a product: pixels x output channels x (taps x input channels)."""
    pixels = to.batch * to.side**2
    weights = to.channels * taps * inputs
    return Kernel(m=pixels, n=to.channels, k=taps * inputs, flops=2.0 * pixels * weights, num_parameters=weights)


def depthwise(to: Place, taps: int) -> Kernel:
    """Every output reads so many numbers of its own channel."""
    return Kernel(
        moved_bytes=to.elements * (taps + 1) * ELEMENT_BYTES,
        flops=2.0 * to.elements * taps,
        num_parameters=to.channels * taps,
    )


def pooled(to: Place, stride: int = 1) -> Kernel:
    """A window's maximum or mean; inputs come from memory once."""
    return one_pass(to.elements * (stride**2 + 1))


def summed(place: Place) -> Kernel:
    """Two tensors added."""
    return one_pass(3 * place.elements)


def classified(last: Place, classes: int) -> Block:
    """The mean over pixels, and the classes."""
    pixel = Place(batch=last.batch, channels=classes, side=1)
    return (one_pass(last.elements + last.batch * last.channels), product(pixel, last.channels))
