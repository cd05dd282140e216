"""Seconds of a network's layers on a device, by the rules of `orrery kernel`.

A convolution is the product of (positions) x (taps x inputs) x (outputs) whose windows are not written out: the input
is read once, and not once for each tap, so

    time = launch + (time of the product - launch) x max(compute, memory of one reading) / max(compute, memory)

One in groups is too thin for that: it reads
its input and writes its output once, on the vector units,

    time = max(bytes / bandwidth, 2 x multiply-adds / vector rate)

with the launch and the share of the bandwidth of element-wise kernels.

Layer norms of floats are element-wise kernels, and GELUs run with the product before them. Integer-only, products write
codes instead of 16 bits, attention is two products with a softmax of codes between them, and norms, softmax and GELU
are those of ``orrery.kernels.elementwise.integer_only``; otherwise a product of few bits also rounds what enters it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.hardware.device import Device
from orrery.kernels.elementwise import integer_only
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, Timing
from orrery.models.networks import Convolution, Layer, Network, RowWise, SelfAttention
from orrery.numerics.registry import get_format

Floats, Ints = NDArray[np.float64], NDArray[np.int64]

SIXTEEN_BITS, WIDE = 16, "fp16"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerCosts:
    """Seconds of each layer, its operations, what it moves, its two roofs, and what its launch adds."""

    time_s: Floats
    flops: Floats
    moved_bytes: Floats
    compute_s: Floats
    memory_s: Floats
    launch_s: Floats

    @property
    def bound_by(self) -> str:
        """The limit on most of the time."""
        waits = self.launch_s > 0.5 * self.time_s
        computes = ~waits & (self.compute_s >= self.memory_s)
        by = {
            "launch": self.time_s[waits].sum(),
            "compute": self.time_s[computes].sum(),
            "memory": self.time_s[~waits & ~computes].sum(),
        }
        return max(by, key=lambda name: float(by[name]))


def unit_times_s(network: Network, device: Device, format: str) -> list[float]:
    """Seconds of each unit of the network."""
    times = layer_times_s([layer for unit in network.units for layer in unit.layers], device, format)
    ends = [0, *accumulate(len(unit.layers) for unit in network.units)]
    return [sum(times[a:b]) for a, b in pairwise(ends)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The format that products multiply, and whether all that lies between them is integers too."""

    format: str
    is_integer_only: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether products multiply fewer than 16 bits."""
        return get_format(self.format).element_bits < SIXTEEN_BITS

    @property
    def between(self) -> str:
        """The format of what float kernels between products read and write."""
        return WIDE if self.is_narrow else self.format

    @property
    def code_bytes(self) -> float:
        """Bytes of a code."""
        return get_format(self.format).element_bits / 8.0


def layer_times_s(layers: Sequence[Layer], device: Device, format: str) -> list[float]:
    """Seconds of each layer, alone, on one input."""
    return [float(x) for x in layer_costs(layers, device, Numbers(format=format), 1).time_s]


def layer_costs(layers: Sequence[Layer], device: Device, numbers: Numbers, batch: int) -> LayerCosts:
    """Costs of each layer alone, on a batch of inputs."""
    found = np.zeros((6, len(layers)))
    by = dict[Rule, list[int]]()
    for i, layer in enumerate(layers):
        by.setdefault(_rule(layer), []).append(i)
    for rule, indices in by.items():
        found[:, indices] = rule([layers[i] for i in indices], device, numbers, batch)
    time_s, flops, moved, compute_s, memory_s, launch_s = found
    return LayerCosts(
        time_s=time_s, flops=flops, moved_bytes=moved, compute_s=compute_s, memory_s=memory_s, launch_s=launch_s
    )


Rule = Callable[[Sequence[Layer], Device, Numbers, int], Floats]
"""Fills six rows: seconds, operations, bytes, both roofs, and the launch."""


def _rule(layer: Layer) -> Rule:
    if isinstance(layer, SelfAttention):
        return _attention
    if isinstance(layer, RowWise):
        return _row_wise
    return _products if layer.groups == 1 else _grouped


def _convolutions(layers: Sequence[Layer]) -> list[Convolution]:
    return [layer for layer in layers if isinstance(layer, Convolution)]


def _product(m: Ints, n: Ints, k: Ints, numbers: Numbers, times: int = 1) -> Gemm:
    """Integer-only, the results are codes, and what enters is so already."""
    return Gemm(
        m=m,
        n=n,
        k=k,
        batch=times,
        format=numbers.format,
        quantises_input=numbers.is_narrow and not numbers.is_integer_only,
        result_bytes=numbers.code_bytes if numbers.is_integer_only else 0.0,
    )


def _products(layers: Sequence[Layer], device: Device, numbers: Numbers, batch: int) -> Floats:
    sizes = [(batch * x.positions, x.outputs, x.taps * x.inputs) for x in _convolutions(layers)]
    m, n, k = np.array(sizes, np.int64).T
    found = kernels.predict(_product(m, n, k, numbers), device)
    taps = np.array([x.taps for x in _convolutions(layers)], np.float64)
    again = (1.0 - 1.0 / taps) * m * k * get_format(numbers.format).bits_per_element / 8.0  # bytes that windows share
    moved = found.bytes - again
    memory_s = found.memory_s * moved / found.bytes
    roof, once = np.maximum(found.compute_s, found.memory_s), np.maximum(found.compute_s, memory_s)
    time_s = found.overhead_s + (found.time_s - found.overhead_s) * once / roof
    return np.stack([time_s, found.flops, moved, found.compute_s, memory_s, found.overhead_s])


def _grouped(layers: Sequence[Layer], device: Device, numbers: Numbers, batch: int) -> Floats:
    convolutions = _convolutions(layers)
    sizes = [(batch * x.positions, x.outputs, batch * x.num_macs) for x in convolutions]
    positions, outputs, macs = np.array(sizes, np.int64).T
    op = Elementwise(kind="norm", tokens=positions, width=outputs, format=numbers.between)
    found = kernels.predict(op, device)
    compute_s = 2.0 * macs / device.vector_flops_per_s
    time_s = np.maximum(found.time_s, compute_s)
    return np.stack([time_s, 2.0 * macs, found.bytes, compute_s, found.memory_s, found.overhead_s])


def _row_wise(layers: Sequence[Layer], device: Device, numbers: Numbers, batch: int) -> Floats:
    found = [layer for layer in layers if isinstance(layer, RowWise)]
    return np.array([_one_row_wise(layer, device, numbers, batch) for layer in found]).T


def _one_row_wise(layer: RowWise, device: Device, numbers: Numbers, batch: int) -> list[float]:
    rows = batch * layer.tokens
    if numbers.is_integer_only:
        return _columns(integer_only.predict(layer.kind, rows, layer.width, device))
    if layer.kind == "gelu":
        return [0.0] * 6
    op = Elementwise(kind="norm", tokens=rows, width=layer.width, format=numbers.between)
    return _columns(kernels.predict(op, device))


def _attention(layers: Sequence[Layer], device: Device, numbers: Numbers, batch: int) -> Floats:
    found = [layer for layer in layers if isinstance(layer, SelfAttention)]
    one = _integer_attention if numbers.is_integer_only else _one_attention
    return np.array([one(layer, device, numbers, batch) for layer in found]).T


def _one_attention(layer: SelfAttention, device: Device, numbers: Numbers, batch: int) -> list[float]:
    op = AttentionPrefill(
        batch=batch,
        query_tokens=layer.tokens,
        context_tokens=layer.tokens,
        num_heads=layer.num_heads,
        num_kv_heads=layer.num_kv_heads,
        head_size=layer.head_size,
        format=numbers.between,
        kv_format=numbers.between,
        is_causal=layer.is_causal,
    )
    return _columns(kernels.predict(op, device))


def _integer_attention(layer: SelfAttention, device: Device, numbers: Numbers, batch: int) -> list[float]:
    """Scores of all heads, a softmax of their rows, and the weighted values."""
    tokens, heads = np.array(layer.tokens, np.int64), batch * layer.num_heads
    size = np.array(layer.head_size, np.int64)
    parts = (
        kernels.predict(_product(tokens, tokens, size, numbers, heads), device),
        integer_only.predict("softmax", heads * layer.tokens, layer.tokens, device),
        kernels.predict(_product(tokens, size, tokens, numbers, heads), device),
    )
    return [sum(column) for column in zip(*map(_columns, parts), strict=True)]


def _columns(found: Timing) -> list[float]:
    columns = (found.time_s, found.flops, found.bytes, found.compute_s, found.memory_s, found.overhead_s)
    return [float(np.sum(column)) for column in columns]
