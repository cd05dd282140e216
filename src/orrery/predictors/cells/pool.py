"""Simulated machines: devices of the catalogue whose constants and libraries differ from what their papers say.

Every constant that was fitted, every roof, and the pace of each class of kernel is multiplied by a lognormal draw, so
that no two machines agree, nor any with its data sheet.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from orrery.catalog.devices import device_names, get_device
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.gemm.machine import CHOICES
from orrery.predictors.cells.latency import NUM_CLASSES, machine
from orrery.predictors.cells.learned import Bench
from orrery.predictors.cells.space import Space

NOISE_FRAC = 0.03
"""Relative noise of one timing: assumed, what a mean over a few dozen runs usually leaves."""

CONSTANT_SPREAD = 0.3
CLASS_SPREAD = 0.4
"""Standard deviations of the logarithms: assumed."""

EAGER_LAUNCH_S, COMPILED_LAUNCH_S = 1e-5, 1e-6
"""A launch of plain PyTorch on a GPU, as the training rule counts it; a step of a compiled program, assumed."""

_ROOFS = ("memory_bandwidth_bytes_per_s", "vector_flops_per_s", "last_level_cache_bytes")


@cache
def devices_of(words: str, but: str = "") -> tuple[Device, ...]:
    """The catalogue's devices of those kinds and makers, by comma, and of none of the others."""
    targets, left_out = ({word.strip() for word in text.split(",")} for text in (words, but))
    every = (get_device(name) for name in device_names())
    return tuple(d for d in every if targets & {d.kind, d.vendor} and not left_out & {d.kind, d.vendor})


def launch_s(device: Device) -> float:
    """Host time of a kernel."""
    return EAGER_LAUNCH_S if device.kind == "gpu" else COMPILED_LAUNCH_S


def bench(device: Device, space: Space, batch: int, rng: np.random.Generator | None = None) -> Bench:
    """A machine with that device: as its data sheet says, or perturbed by draws of ``rng``."""
    nominal = machine(device, space, batch, launch_s(device))
    if rng is None:
        return Bench(truth=nominal, nominal=nominal, noise_frac=NOISE_FRAC)
    other = machine(_perturbed(device, rng), space, batch, launch_s(device))
    ratios = np.exp(CLASS_SPREAD * rng.standard_normal(NUM_CLASSES))
    return Bench(truth=other.scaled(ratios), nominal=nominal, noise_frac=NOISE_FRAC)


def _perturbed(device: Device, rng: np.random.Generator) -> Device:
    """The device with other roofs and other fitted constants."""

    def factor() -> float:
        return float(np.exp(CONSTANT_SPREAD * rng.standard_normal()))

    peak = factor()
    roofs = {name: getattr(device, name) * factor() for name in _ROOFS}
    factors: dict[str, float] = {}

    def other(found: Calibration) -> Calibration:
        constants = {
            name: value if name in CHOICES else value * factors.setdefault(f"{found.op} {name}", factor())
            for name, value in found.constants.items()
        }
        return replace(found, constants={n: min(v, 1.0) if n.endswith("_frac") else v for n, v in constants.items()})

    needed = {key: other(found) for key, found in device.calibrations.items() if key[0] in _OPS}
    return replace(
        device,
        **roofs,
        calibrations=needed,
        dense_flops_per_s={rate: flops * peak for rate, flops in device.dense_flops_per_s.items()},
    )


_OPS = frozenset({"gemm", "elementwise_add"})
"""Operations of cells."""
