"""Rows gathered from a table in memory: useful bytes over the bytes that the memory must move for them.

A device fetches whole lines. A vector of v bytes that starts at a line's edge moves ceil(v / line) lines:

    useful rate = bandwidth x v / (line x ceil(v / line))

GPUs fetch sectors of 32 bytes (CUDA C++ Programming Guide, device memory accesses), Gaudi lines of 256 bytes
(Debunking the CUDA Myth, arXiv 2501.00210), so short embedding vectors cost the one far more than the other.
"""

from math import ceil

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device

SECTOR_BYTES, GAUDI_LINE_BYTES = 32.0, 256.0


def line_bytes(device: Device) -> float:
    """Minimum fetch of a device; OutOfRange where no source was read."""
    if device.generation.startswith("gaudi"):
        return GAUDI_LINE_BYTES
    if device.vendor == "NVIDIA" and device.kind == "gpu":
        return SECTOR_BYTES
    raise OutOfRange(f"{device.name}: how many bytes it fetches at least is known of NVIDIA's GPUs and of Gaudi alone.")


def useful_frac(vector_bytes: float, line_bytes: float) -> float:
    """Share of the memory's rate that ends up in gathered vectors.

    >>> useful_frac(64.0, 256.0), useful_frac(512.0, 256.0)
    (0.25, 1.0)
    """
    if not (vector_bytes > 0 and line_bytes > 0):
        raise OutOfRange(f"vectors of {vector_bytes:g} and lines of {line_bytes:g} bytes; write sizes above 0.")
    return vector_bytes / (line_bytes * ceil(vector_bytes / line_bytes))
