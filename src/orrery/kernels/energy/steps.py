"""Power of a device over a step of many kernels, by the work of the step and the time that it takes.

    power = idle + (limit - idle) min(1, matrix X^g + memory Y^g)
    X     = sum of (flops / peak) / time,  Y = bytes / bandwidth / time

The sum runs over operations, each against the peak of its own format: nothing is drawn twice where a step mixes
formats, and a device without work idles. The same law answers for estimates, plans and the simulator, which carry
``matrix_s`` and ``memory_s``: seconds at the roofs, weighted so that their g-th powers add up to the share.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.energy import _kernel
from orrery.kernels.resolve import find
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

CONSTANTS = ("matrix_frac", "memory_frac", "concave_power")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLaw:
    """The law's constants for one device."""

    idle_w: float
    span_w: float  # from idle to the limit
    matrix_weight: float  # matrix_frac^(1/g), so that weighted seconds enter alike
    memory_weight: float
    concave_power: float

    def power_w(self, matrix_s: float, memory_s: float, wall_s: float) -> float:
        """Mean power over a step that takes ``wall_s``."""
        share: float = _kernel.drawn_frac(matrix_s, memory_s, wall_s, self.concave_power)
        return self.idle_w + self.span_w * share

    def powers_w(self, matrix_s: Floats, memory_s: Floats, wall_s: Floats) -> Floats:
        """The same of many steps."""
        g = self.concave_power
        share = (matrix_s / wall_s) ** g + (memory_s / wall_s) ** g
        return self.idle_w + self.span_w * np.minimum(share, 1.0)

    def demand_frac(self, matrix_s: float, memory_s: float, wall_s: float) -> float:
        """Demand as a share of the range between idle and the limit; above 1 the clock falls."""
        g = self.concave_power
        return (matrix_s / wall_s) ** g + (memory_s / wall_s) ** g if wall_s > 0.0 else 0.0


def step_calibration(device: Device) -> Calibration:
    """The fitted constants: one set for all formats, which differ in their peaks alone."""
    return find(device, "step_power", "bf16")


def step_spread(device: Device) -> Spread:
    """The relative error of the law, on models that the constants never saw."""
    return step_calibration(device).spread


@lru_cache(maxsize=256)
def step_law(device: Device) -> StepLaw:
    """The law for a device."""
    matrix, memory, power = (step_calibration(device).constants[name] for name in CONSTANTS)
    return StepLaw(
        idle_w=device.idle_power_w,
        span_w=device.power_limit_w - device.idle_power_w,
        matrix_weight=matrix ** (1.0 / power),
        memory_weight=memory ** (1.0 / power),
        concave_power=power,
    )


@lru_cache(maxsize=1024)
def peak_of(device: Device, format: str) -> float:
    """The peak rate that a format's operations are counted against."""
    try:
        return device.peak_flops_per_s(get_format(format).rates)[1]
    except OutOfRange:
        return device.vector_flops_per_s


def weighted_s(device: Device, format: str, flops: Floats, moved_bytes: Floats) -> tuple[Floats, Floats]:
    """(matrix_s, memory_s) of one operation: what a step's law adds up."""
    law = step_law(device)
    matrix_s = law.matrix_weight / peak_of(device, format) * flops
    memory_s = law.memory_weight / device.memory_bandwidth_bytes_per_s * moved_bytes
    return matrix_s, memory_s
