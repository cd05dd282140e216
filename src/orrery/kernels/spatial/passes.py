"""Attention on an array in three passes over a row of scores, two or one, on any device that is such an array."""

from collections.abc import Mapping
from math import sqrt

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.spatial.attention import (
    ArrayRun,
    Attention,
    SpatialArray,
    one_pass,
    one_pass_on_lanes,
    three_pass,
    two_pass,
)

GENERATION = "square-array"
"""Name of the architecture in device files: one square array of multipliers with a row of lanes beside it."""

VARIANTS: Mapping[str, str] = {
    "three-pass": "maximum, exponentials with their sum, division: rows wait on chip, or go to memory and back",
    "two-pass": "exponentials against a block's own maximum, corrected when the row is known: rows wait once",
    "one-pass": "running maxima and sums, exponentials on the array",
    "one-pass-lanes": "running maxima and sums, exponentials on the lanes",
}


def array_of(device: Device) -> SpatialArray:
    """The device as an array: its side follows from peak and clock, its buffer is the last level of its memory."""
    if device.generation != GENERATION:
        raise OutOfRange(
            f"{device.name} is {device.generation}: passes are counted on devices whose file says generation = "
            f"{GENERATION!r}, such as fusemax."
        )
    peak = max(device.dense_flops_per_s.get(rate, 0.0) for rate in ("fp16", "bf16"))
    return SpatialArray(
        num_side=round(sqrt(peak / (2.0 * device.compute_clock_hz))),
        clock_hz=device.compute_clock_hz,
        buffer_bytes=device.last_level_cache_bytes,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth_bytes_per_s,
    )


def run(variant: str, work: Attention, array: SpatialArray) -> ArrayRun:
    """One attention in that many passes."""
    rules = {"three-pass": three_pass, "two-pass": two_pass, "one-pass": one_pass, "one-pass-lanes": one_pass_on_lanes}
    return rules[variant](work, array)
