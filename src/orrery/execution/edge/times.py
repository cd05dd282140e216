"""Seconds of a network's layers on a device, by the rules of `orrery kernel`.

A convolution is the product of (positions) x (taps x inputs) x (outputs) whose windows are not written out: the input
is read once, and not once for each tap, so

    time = launch + (time of the product - launch) x max(compute, memory of one reading) / max(compute, memory)

One in groups is too thin for that: it reads
its input and writes its output once, on the vector units,

    time = max(bytes / bandwidth, 2 x multiply-adds / vector rate)

with the launch and the share of the bandwidth of element-wise kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm
from orrery.models.networks import Convolution, Layer, Network, SelfAttention
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]


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


def layer_times_s(layers: Sequence[Layer], device: Device, format: str) -> list[float]:
    """Seconds of each layer, alone, on one input."""
    return [float(x) for x in layer_costs(layers, device, format, 1).time_s]


def layer_costs(layers: Sequence[Layer], device: Device, format: str, batch: int) -> LayerCosts:
    """Costs of each layer alone, on a batch of inputs."""
    found = np.zeros((6, len(layers)))
    by = dict[Rule, list[int]]()
    for i, layer in enumerate(layers):
        by.setdefault(_rule(layer), []).append(i)
    for rule, indices in by.items():
        found[:, indices] = rule([layers[i] for i in indices], device, format, batch)
    time_s, flops, moved, compute_s, memory_s, launch_s = found
    return LayerCosts(
        time_s=time_s, flops=flops, moved_bytes=moved, compute_s=compute_s, memory_s=memory_s, launch_s=launch_s
    )


Rule = Callable[[Sequence[Layer], Device, str, int], Floats]
"""Fills six rows: seconds, operations, bytes, both roofs, and the launch."""


def _rule(layer: Layer) -> Rule:
    if isinstance(layer, SelfAttention):
        return _attention
    return _products if layer.groups == 1 else _grouped


def _convolutions(layers: Sequence[Layer]) -> list[Convolution]:
    return [layer for layer in layers if isinstance(layer, Convolution)]


def _products(layers: Sequence[Layer], device: Device, format: str, batch: int) -> Floats:
    sizes = [(batch * x.positions, x.outputs, x.taps * x.inputs) for x in _convolutions(layers)]
    m, n, k = np.array(sizes, np.int64).T
    found = kernels.predict(Gemm(m=m, n=n, k=k, format=format, quantises_input=False), device)
    taps = np.array([x.taps for x in _convolutions(layers)], np.float64)
    again = (1.0 - 1.0 / taps) * m * k * get_format(format).bits_per_element / 8.0  # bytes that windows share
    moved = found.bytes - again
    memory_s = found.memory_s * moved / found.bytes
    roof, once = np.maximum(found.compute_s, found.memory_s), np.maximum(found.compute_s, memory_s)
    time_s = found.overhead_s + (found.time_s - found.overhead_s) * once / roof
    return np.stack([time_s, found.flops, moved, found.compute_s, memory_s, found.overhead_s])


def _grouped(layers: Sequence[Layer], device: Device, format: str, batch: int) -> Floats:
    convolutions = _convolutions(layers)
    sizes = [(batch * x.positions, x.outputs, batch * x.num_macs) for x in convolutions]
    positions, outputs, macs = np.array(sizes, np.int64).T
    found = kernels.predict(Elementwise(kind="norm", tokens=positions, width=outputs, format=format), device)
    compute_s = 2.0 * macs / device.vector_flops_per_s
    time_s = np.maximum(found.time_s, compute_s)
    return np.stack([time_s, 2.0 * macs, found.bytes, compute_s, found.memory_s, found.overhead_s])


def _attention(layers: Sequence[Layer], device: Device, format: str, batch: int) -> Floats:
    found = [layer for layer in layers if isinstance(layer, SelfAttention)]
    return np.array([_one_attention(layer, device, format, batch) for layer in found]).T


def _one_attention(layer: SelfAttention, device: Device, format: str, batch: int) -> list[float]:
    op = AttentionPrefill(
        batch=batch,
        query_tokens=layer.tokens,
        context_tokens=layer.tokens,
        num_heads=layer.num_heads,
        num_kv_heads=layer.num_kv_heads,
        head_size=layer.head_size,
        format=format,
        kv_format=format,
        is_causal=layer.is_causal,
    )
    found = kernels.predict(op, device)
    columns = (found.time_s, found.flops, found.bytes, found.compute_s, found.memory_s, found.overhead_s)
    return [float(np.sum(column)) for column in columns]
