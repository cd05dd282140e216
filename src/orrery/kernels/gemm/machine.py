"""Parameters of a device and a format for the GEMM kernel, as the two vectors of ``_kernel``."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.gemm._kernel import CONSTANTS
from orrery.numerics.format import Format

Floats = NDArray[np.float64]

OFF: Mapping[str, float] = {
    "dequantise_ratio": 1e9,
    "max_splits": 1.0,
    "min_rows": 0.0,
    "gemv_rows": 0.0,
    "gemv_s": 1.0,
    "gemv_ratio": 1.0,
    "quantise_s": 0.0,
    "quantise_frac": 1e9,
    "split_s": 0.0,
    "ramp_s": 1e-12,
    "reread_ratio": 1.0,
    "host_s": 0.0,
}
"""Values at which a mechanism takes no time: constants that a group does not have."""

CHOICES = frozenset({"tile_set", "max_splits", "min_rows", "gemv_rows"})
"""Constants that are whole numbers: another device keeps them as they are."""

SIXTEEN_BIT_BYTES = 2.0

UNIT_FLOPS_PER_CYCLE = 2.0 * 8192
"""A unit with a higher 16-bit rate than this (no SM up to Blackwell reaches it) works on several tiles side by side,
as the big matrix units of TPUs do: it counts as that many units."""


def constants_vector(constants: Mapping[str, float]) -> Floats:
    """The fitted constants in the kernel's order."""
    return np.array([constants[name] if name in constants else OFF[name] for name in CONSTANTS])


def machine_vector(device: Device, number: Format) -> Floats:
    """Units, roofs, cache, and the bytes of one element of A, B, C and of the quantised input."""
    weight = number.bytes_per_element
    activation = SIXTEEN_BIT_BYTES if number.weight_only else weight
    result = max(SIXTEEN_BIT_BYTES, activation)
    return np.array(
        [
            num_units(device),
            peak_flops_per_s(device, number),
            device.vector_flops_per_s,
            device.memory_bandwidth_bytes_per_s,
            max(device.last_level_cache_bytes, 1.0),
            activation,
            weight,
            result,
            activation,
        ]
    )


def num_units(device: Device) -> float:
    """How many tiles are computed at once."""
    peak = max(device.dense_flops_per_s.get(rate, 0.0) for rate in ("bf16", "fp16"))
    return max(1.0, float(device.num_compute_units), peak / UNIT_FLOPS_PER_CYCLE / device.compute_clock_hz)


def peak_flops_per_s(device: Device, number: Format) -> float:
    """The dense matrix peak; where the device states none for this format, the rate of its vector units."""
    try:
        return device.peak_flops_per_s(number.rates)[1]
    except OutOfRange:
        return device.vector_flops_per_s
