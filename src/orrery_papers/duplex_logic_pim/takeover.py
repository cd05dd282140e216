"""The intensity at which the processor farther from the memory becomes the faster one."""

from orrery.base.errors import OutOfRange
from orrery.hardware.roofs import Roofs


def takeover_flops_per_byte(near: Roofs, far: Roofs) -> float:
    """Operations a byte above which the far processor is the faster one; ``near`` reads faster and computes slower."""
    if near.bytes_per_s <= far.bytes_per_s or near.flops_per_s >= far.flops_per_s:
        raise OutOfRange(f"{near} against {far}: neither takes over; the near one must read faster, the far compute.")
    return near.flops_per_s / far.bytes_per_s
