"""Costs of every layer in every format: perturbation, time, bytes and energy, as tables of layers by formats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.formats import activations_for, compute_format
from orrery.hardware.device import Device
from orrery.kernels.energy import energy_j
from orrery.kernels.ops import Gemm, MoE
from orrery.numerics.parse import parse_format
from orrery.numerics.registry import get_format
from orrery.planner.bits.fabric import Fabric
from orrery.planner.bits.layer import Layer

Floats = NDArray[np.float64]

UNITS = {"latency": "s", "size": "bytes", "energy": "j"}
"""Quantities that may be limited, in the order in which limits are looked at, and their units."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """The choice: a row a layer, a column a format."""

    layers: tuple[Layer, ...]
    formats: tuple[str, ...]
    perturbation_ratio: Floats
    latency_s: Floats
    size_bytes: Floats
    energy_j: Floats

    def cost(self, metric: str) -> Floats:
        """The table of one thing that may be limited."""
        return {"latency": self.latency_s, "size": self.size_bytes, "energy": self.energy_j}[metric]

    def uniform(self, metric: str) -> Floats:
        """Total cost in each format alone."""
        return np.asarray(self.cost(metric).sum(axis=0))


def options_of(
    layers: Sequence[Layer],
    formats: Sequence[str],
    device: Device,
    relative_error: Mapping[str, float],
    engine: str = "",
    *,
    is_integer_only: bool = False,
    fabric: Fabric | None = None,
) -> Options:
    """Costs by the kernels floor; ``relative_error`` of a format stands in where a layer has none of its own.

    ``is_integer_only``: results are codes of the layer's format, not numbers of 16 bits. ``fabric``: products are
    circuits of an FPGA in place of kernels.
    """

    kernels_of = _Kernels(device=device, engine=engine, is_integer_only=is_integer_only)
    times, energies = _timed(layers, formats, fabric or kernels_of)
    sizes = [[x.num_parameters * x.count * parse_format(f).bytes_per_element for f in formats] for x in layers]
    return Options(
        layers=tuple(layers),
        formats=tuple(formats),
        latency_s=times,
        energy_j=energies,
        perturbation_ratio=np.array([[perturbation(x, f, relative_error) for f in formats] for x in layers]),
        size_bytes=np.array(sizes, dtype=np.float64),
    )


def perturbation(layer: Layer, format: str, relative_error: Mapping[str, float]) -> float:
    """As given; or weight x squared error of this layer; or weight x the format's relative squared error."""
    if format in layer.perturbations:
        return layer.perturbations[format]
    return layer.weight_ratio * layer.errors.get(format, relative_error.get(format, 0.0) * layer.count)


def _timed(layers: Sequence[Layer], formats: Sequence[str], on: "_Kernels | Fabric") -> tuple[Floats, Floats]:
    """Seconds and joules; measured times where a layer brings them, with the power of what was predicted."""
    times, energies = np.empty((len(layers), len(formats))), np.empty((len(layers), len(formats)))
    for column, format in enumerate(formats):
        seen: dict[tuple[object, ...], tuple[float, float, float]] = {}
        for row, layer in enumerate(layers):
            shape = _shape(layer.work)
            if shape not in seen:
                seen[shape] = on.once(layer.work, format)
            time_s, flops, moved = seen[shape]
            once_s = layer.times_s[format] / layer.count if format in layer.times_s else time_s
            times[row, column] = once_s * layer.count
            energies[row, column] = on.energy_j(format, once_s, flops, moved) * layer.count
    return times, energies


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernels:
    """Products as a device's kernels run them."""

    device: Device
    engine: str
    is_integer_only: bool

    def once(self, work: Gemm | MoE, format: str) -> tuple[float, float, float]:
        """Seconds, operations and bytes of a product whose weights are stored in the format."""
        name = arithmetic(format, self.device)
        if isinstance(work, Gemm):
            codes = get_format(format).element_bits / 8.0 if self.is_integer_only else 0.0
            work = replace(work, format=name, result_bytes=codes)
        else:
            work = replace(work, format=name)
        timing = kernels.predict(work, self.device, self.engine)
        return float(timing.time_s), float(timing.flops), float(timing.bytes)

    def energy_j(self, format: str, time_s: float, flops: float, moved_bytes: float) -> float:
        """Joules of it."""
        return float(energy_j(self.device, arithmetic(format, self.device), time_s, flops, moved_bytes))


def arithmetic(format: str, device: Device) -> str:
    """Arithmetic of the device when weights are stored in ``format``."""
    return compute_format(format, activations_for(format, device), device)


def _shape(work: Gemm | MoE) -> tuple[object, ...]:
    """Equal for works of equal cost."""
    if isinstance(work, Gemm):
        return work.m, work.n, work.k, work.batch
    return work.tokens, work.hidden_size, work.ffn_size, work.num_experts, work.experts_per_token, work.is_gated
