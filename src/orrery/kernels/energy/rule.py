"""Power of a device: idle, being awake, the matrix units and the memory, up to its limit.

    power = idle + (limit - idle) (awake + matrix (flops/s / peak)^g + memory (bytes/s / bandwidth)^g)

``g`` < 1: half the work draws more than half the power, because clocks and schedulers run all the same. What would
pass the limit is drawn as the limit: the device lowers its clock, which the measured times already contain.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.energy import learned
from orrery.kernels.resolve import find
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]
Rate = float | Floats

CONSTANTS = ("awake_frac", "matrix_frac", "memory_frac", "concave_power")


def calibration(device: Device, format: str) -> Calibration:
    """The measured constants for a format, or those of the nearest kin."""
    return find(device, "power", get_format(format).name)


@lru_cache(maxsize=1024)
def _ready(device: Device, format: str) -> tuple[float, float, float, float, float]:
    """Watts awake, at full matrix rate and at full bandwidth above idle; the exponent; the peak."""
    known = calibration(device, format).constants
    span = device.power_limit_w - device.idle_power_w
    try:
        peak = device.peak_flops_per_s(get_format(format).rates)[1]
    except OutOfRange:
        peak = device.vector_flops_per_s
    awake, matrix, memory, power = (known[name] for name in CONSTANTS)
    return device.idle_power_w + span * awake, span * matrix, span * memory, power, peak


def demand_w(device: Device, format: str, flops_per_s: Rate, bytes_per_s: Rate) -> Floats:
    """Power of the work without a limit; above ``device.power_limit_w`` the device throttles."""
    awake_w, matrix_w, memory_w, power, peak = _ready(device, format)
    matrix = matrix_w * np.power(np.divide(flops_per_s, peak), power)
    memory = memory_w * np.power(np.divide(bytes_per_s, device.memory_bandwidth_bytes_per_s), power)
    return np.asarray(awake_w + matrix + memory, dtype=np.float64)


def power_w(device: Device, format: str, flops_per_s: Rate, bytes_per_s: Rate, op: str = "") -> Floats:
    """Power of the device while it works at these rates: between idle and the limit.

    ``op``: the one kernel that it repeats, for what was learned of that kernel beyond its rates.
    """
    watts = np.minimum(demand_w(device, format, flops_per_s, bytes_per_s), device.power_limit_w)
    found = calibration(device, format)
    if not op or not learned.is_known(found, op):
        return watts
    x = kernel_features(device, format, flops_per_s, bytes_per_s, op)
    return np.clip(watts * learned.factors(x, found).reshape(watts.shape), device.idle_power_w, device.power_limit_w)


def power_spread(
    device: Device, format: str, flops_per_s: Rate, bytes_per_s: Rate, op: str = ""
) -> Spread | learned.Spreads:
    """The relative error of ``power_w``: row by row where that was measured."""
    found = calibration(device, format)
    if not op or not learned.is_known(found, op):
        return found.spread
    x = kernel_features(device, format, flops_per_s, bytes_per_s, op)
    return learned.spreads(x, np.broadcast_shapes(np.shape(flops_per_s), np.shape(bytes_per_s)), found) or found.spread


def kernel_features(device: Device, format: str, flops_per_s: Rate, bytes_per_s: Rate, op: str) -> Floats:
    """Features of kernels at these rates for the learned trees."""
    flops, moved = (np.ravel(rate) for rate in np.broadcast_arrays(flops_per_s, bytes_per_s))
    watts = np.minimum(demand_w(device, format, flops, moved), device.power_limit_w)
    drawn = (watts - device.idle_power_w) / max(device.power_limit_w - device.idle_power_w, 1.0)
    peak, bandwidth = _ready(device, format)[4], device.memory_bandwidth_bytes_per_s
    return learned.features(flops / peak, moved / bandwidth, drawn, op, get_format(format).bytes_per_element)


def energy_j(device: Device, format: str, time_s: Rate, flops: Rate, bytes: Rate) -> Floats:
    """Energy of work that takes ``time_s``; nothing for no time."""
    time = np.asarray(time_s, dtype=np.float64)
    rate = np.divide(1.0, time, out=np.zeros_like(time), where=time > 0.0)
    return time * power_w(device, format, np.multiply(flops, rate), np.multiply(bytes, rate))
