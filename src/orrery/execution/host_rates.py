"""Achieved shares of peak for copies over a host's link and for programs in its memory."""

from orrery.hardware.device import Device

HOST_MEMORY_FRAC = 0.76
"""Share of the host memory's peak that streaming programs reach: over 260 GB/s on two AMD EPYC 7551, whose 16 channels
of DDR4-2666 make 341 GB/s (Azure, HB-series)."""

HOST_RATE_FRAC = 0.82
"""Share of a host link's stated rate that copies reach: nvbandwidth shows 52.8 of 63 GB/s on H100s (device to host,
NVIDIA/nvbandwidth issue 24) and 25.1 of 31.5 on an A100 (issue 42)."""


def copy_bytes_per_s(device: Device, num_per_link: int = 1) -> float:
    """Bytes a second of copies between a device and its host's memory, each way, of a link that some devices share."""
    return HOST_RATE_FRAC * device.host.each_way_bytes_per_s / num_per_link
