"""Memory beside the processors of a device that a kernel may fill: registers, and shared memory of one block."""

from collections.abc import Mapping

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device

SHARED_BYTES: Mapping[str, float] = {
    "pascal": 48 * 1024.0,
    "volta": 96 * 1024.0,
    "turing": 64 * 1024.0,
    "ada": 99 * 1024.0,
    "hopper": 227 * 1024.0,
    "blackwell": 227 * 1024.0,
    "blackwell-consumer": 99 * 1024.0,
    "xe-hpc": 128 * 1024.0,
    "cdna1": 64 * 1024.0,
    "cdna2": 64 * 1024.0,
    "cdna3": 64 * 1024.0,
    "cdna4": 160 * 1024.0,
}
"""That one block may take: CUDA C++ Programming Guide, technical specifications by compute capability (6.0 to 12.0);
shared local memory of an Xe core (Intel, oneAPI GPU optimisation guide); local data share of a compute unit (AMD, CDNA
instruction set guides)."""

AMPERE_SHARED_BYTES = {True: 163 * 1024.0, False: 99 * 1024.0}
"""Bytes that one block may take on compute capability 8.0 (with HBM) and 8.6."""

DATA_CENTRE_AMPERE = ("a100", "a800", "a30")


def shared_bytes(device: Device) -> float:
    """On-chip memory (bytes) that one block may take; OutOfRange where no guide was read."""
    if device.generation == "ampere":
        return AMPERE_SHARED_BYTES[device.name.startswith(DATA_CENTRE_AMPERE)]
    if (found := SHARED_BYTES.get(device.generation)) is None:
        raise OutOfRange(
            f"{device.name} is {device.generation}: how much memory one of its processors has beside it is not known; "
            f"known are ampere, {', '.join(SHARED_BYTES)}."
        )
    return found
