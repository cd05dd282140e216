"""The inner loop of the element-wise rule: bytes over a share of the bandwidth, met by a launch.

stream = bytes / (bandwidth W), less at most ``cache_gain`` of it where the bytes fit the last-level cache
time   = (launch^p + stream^p)^(1/p)
"""

import numpy as np

from orrery.base.compiled import Floats, Floats2, compiled

CONSTANTS = ("overhead_s", "bandwidth_frac", "overlap_power", "cache_gain_frac")
MACHINE = ("vector_flops", "bandwidth", "cache")

TIME, COMPUTE, MEMORY, OVERHEAD, FLOPS, BYTES = range(6)
COLUMNS = 6


def _one(
    elements: float, bytes_each: float, flops_each: float, constants: Floats, machine: Floats, out: Floats
) -> None:
    """Fill ``out`` for a kernel over so many elements; ``overhead`` is what the launch adds to the stream."""
    moved = elements * bytes_each
    out[FLOPS], out[BYTES] = elements * flops_each, moved
    out[COMPUTE], out[MEMORY] = out[FLOPS] / machine[0], moved / machine[1]
    if moved <= 0.0:
        out[TIME] = out[OVERHEAD] = 0.0
        return
    cached_frac = min(1.0, max(0.0, 2.0 - 2.0 * moved / machine[2]))
    stream = moved / (constants[1] * machine[1]) * (1.0 - constants[3] * cached_frac)
    high, low = max(stream, constants[0]), min(stream, constants[0])
    time = high * (1.0 + (low / high) ** constants[2]) ** (1.0 / constants[2])
    out[TIME], out[OVERHEAD] = time, time - stream


@compiled
def scalar(elements: float, bytes_each: float, flops_each: float, constants: Floats, machine: Floats) -> Floats:
    """One kernel; returns the columns."""
    out: Floats = np.empty(COLUMNS)
    _one(elements, bytes_each, flops_each, constants, machine, out)
    return out


@compiled
def many(
    elements: Floats, bytes_each: float, flops_each: float, constants: Floats, machine: Floats, out: Floats2
) -> None:
    """Many kernels, a line of ``out`` each."""
    for i in range(elements.size):
        _one(elements[i], bytes_each, flops_each, constants, machine, out[i])
