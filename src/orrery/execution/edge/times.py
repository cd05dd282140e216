"""Seconds of a network's layers on a device, by the rules of `orrery kernel`.

A convolution is the product of (positions) x (taps x inputs) x (outputs). One in groups is too thin for that: it reads
its input and writes its output once, on the vector units,

    time = max(bytes / bandwidth, 2 x multiply-adds / vector rate)

with the launch and the share of the bandwidth of element-wise kernels.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm
from orrery.models.networks import Convolution, Layer, Network, SelfAttention


def unit_times_s(network: Network, device: Device, format: str) -> list[float]:
    """Seconds of each unit of the network."""
    times = layer_times_s([layer for unit in network.units for layer in unit.layers], device, format)
    ends = [0, *accumulate(len(unit.layers) for unit in network.units)]
    return [sum(times[a:b]) for a, b in pairwise(ends)]


def layer_times_s(layers: Sequence[Layer], device: Device, format: str) -> list[float]:
    """Seconds of each layer, alone."""
    found = np.zeros(len(layers))
    for rule, indices in _by_rule(layers).items():
        found[indices] = rule([layers[i] for i in indices], device, format)
    return [float(x) for x in found]


def _by_rule(layers: Sequence[Layer]) -> dict["Rule", list[int]]:
    found = dict[Rule, list[int]]()
    for i, layer in enumerate(layers):
        found.setdefault(_rule(layer), []).append(i)
    return found


Rule = Callable[[Sequence[Layer], Device, str], NDArray[np.float64]]


def _rule(layer: Layer) -> Rule:
    if isinstance(layer, SelfAttention):
        return _attention_s
    return _products_s if layer.groups == 1 else _grouped_s


def _convolutions(layers: Sequence[Layer]) -> list[Convolution]:
    return [layer for layer in layers if isinstance(layer, Convolution)]


def _products_s(layers: Sequence[Layer], device: Device, format: str) -> NDArray[np.float64]:
    sizes = [(x.positions, x.outputs, x.taps * x.inputs) for x in _convolutions(layers)]
    m, n, k = np.array(sizes, np.int64).T
    return kernels.predict(Gemm(m=m, n=n, k=k, format=format, quantises_input=False), device).time_s


def _grouped_s(layers: Sequence[Layer], device: Device, format: str) -> NDArray[np.float64]:
    found = _convolutions(layers)
    positions, outputs, macs = np.array([(x.positions, x.outputs, x.num_macs) for x in found], np.int64).T
    streamed = kernels.predict(Elementwise(kind="norm", tokens=positions, width=outputs, format=format), device)
    return np.maximum(streamed.time_s, 2.0 * macs / device.vector_flops_per_s)


def _attention_s(layers: Sequence[Layer], device: Device, format: str) -> NDArray[np.float64]:
    found = [layer for layer in layers if isinstance(layer, SelfAttention)]
    return np.array([_one_attention_s(layer, device, format) for layer in found])


def _one_attention_s(layer: SelfAttention, device: Device, format: str) -> float:
    op = AttentionPrefill(
        batch=1,
        query_tokens=layer.tokens,
        context_tokens=layer.tokens,
        num_heads=layer.num_heads,
        num_kv_heads=layer.num_kv_heads,
        head_size=layer.head_size,
        format=format,
        kv_format=format,
        is_causal=layer.is_causal,
    )
    return float(np.sum(kernels.predict(op, device).time_s))
