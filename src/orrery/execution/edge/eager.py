"""Image networks operator by operator: what runs with the product before it elsewhere is a kernel of its own here.

A norm of batches (an affine map once it is trained), an activation and a GELU read and write their features once, an
addition reads two and writes one: they stream as additions do, and move two words of their three.
The host launches each of them and each product while the device works, so a batch takes the longer of the two.
"""

from collections.abc import Iterator
from dataclasses import fields
from math import ceil

import numpy as np

from orrery import kernels
from orrery.execution.edge.times import LayerCosts, Numbers
from orrery.hardware.device import Device
from orrery.kernels.ops import Elementwise
from orrery.models.networks import Convolution, Network, RowWise, Unit

Pass = tuple[int, int]
"""Features of one input that a kernel goes over, and the words that it moves of each."""

ADDITION, MAP = 3, 2
"""Words that an addition moves, and a map of one feature to one."""


def eager_passes(network: Network) -> tuple[Pass, ...]:
    """Every element-wise kernel of one input, beside layer norms."""
    return tuple(one for unit in network.units for one in _passes(unit))


def _passes(unit: Unit) -> Iterator[Pass]:
    for layer in unit.layers:
        if isinstance(layer, Convolution):
            count = int(layer.has_batch_norm) + int(layer.has_activation)
            yield from [(layer.positions * layer.outputs, MAP)] * count
        elif isinstance(layer, RowWise) and layer.kind == "gelu":
            yield layer.tokens * layer.width, MAP
    yield from [(unit.num_results, ADDITION)] * unit.num_additions


def num_operators(network: Network) -> int:
    """Operators that the host launches for one batch; a GELU is one of the passes."""
    layers = [layer for unit in network.units for layer in unit.layers]
    own = sum(not (isinstance(layer, RowWise) and layer.kind == "gelu") for layer in layers)
    return own + len(eager_passes(network))


def with_passes(costs: LayerCosts, passes: LayerCosts) -> LayerCosts:
    """Costs of layers, and of the passes behind them."""
    return LayerCosts(
        **{f.name: np.concatenate([getattr(costs, f.name), getattr(passes, f.name)]) for f in fields(LayerCosts)}
    )


def pass_costs(network: Network, device: Device, numbers: Numbers, batch: int) -> LayerCosts:
    """Costs of every pass on a batch of inputs."""
    found = [
        kernels.predict(
            Elementwise(kind="add", tokens=batch, width=ceil(features * words / ADDITION), format=numbers.between),
            device,
        )
        for features, words in eager_passes(network)
    ]
    names = ("time_s", "flops", "bytes", "compute_s", "memory_s", "overhead_s")
    columns = [np.array([float(np.sum(getattr(one, name))) for one in found]) for name in names]
    time_s, flops, moved, compute_s, memory_s, launch_s = columns
    return LayerCosts(
        time_s=time_s, flops=flops, moved_bytes=moved, compute_s=compute_s, memory_s=memory_s, launch_s=launch_s
    )
