"""Data with gaps in device memory on its way to another process: a copy a run, or packed by one kernel.

Nested types that step through memory come down to one form: runs of bytes, and strides between them, innermost first;
a level whose stride equals what it spans is part of the run. Packed run by run, each run is a copy of its own and takes
the time of its call. Packed by a kernel, runs are read together, in whole sectors of memory, from where they lie to a
buffer: of the device, or across the host's link of the host. Pearson et al. (TEMPI), arXiv 2012.14363.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.hardware.device import Device

SECTOR_BYTES = 32.0
"""The least that an NVIDIA GPU reads of its memory (CUDA C++ Best Practices Guide, coalesced access)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strided:
    """``num_runs`` runs of ``run_bytes`` each, the nearest ``stride_bytes`` apart from start to start."""

    run_bytes: int
    num_runs: int
    stride_bytes: int

    @property
    def total_bytes(self) -> float:
        """Gaps left out."""
        return float(self.run_bytes * self.num_runs)


def canonical(element_bytes: int, levels: Sequence[tuple[int, int]]) -> Strided:
    """The one form of a nest of (count, stride in bytes), innermost first: levels without gaps join the run.

    >>> canonical(8, [(4, 8), (10, 64)])
    Strided(run_bytes=32, num_runs=10, stride_bytes=64)
    """
    run, runs, nearest = element_bytes, 1, 0
    for count, stride in levels:
        if runs == 1 and (stride == run or count == 1):
            run *= count
        else:
            runs *= count
            nearest = nearest or stride
    return Strided(run_bytes=run, num_runs=runs, stride_bytes=nearest or run)


def copied_s(data: Strided, device: Device, copy_s: float) -> float:
    """A copy for each run; ``copy_s`` is what one takes however short."""
    return data.num_runs * (copy_s + data.run_bytes / device.memory_bandwidth_bytes_per_s)


def packed_s(data: Strided, device: Device, kernel_s: float) -> float:
    """One kernel into a buffer of the device: sectors in, as many bytes out as there are."""
    return kernel_s + (_sector_bytes(data) + data.total_bytes) / device.memory_bandwidth_bytes_per_s


def packed_to_host_s(data: Strided, device: Device, kernel_s: float) -> float:
    """One kernel into memory of the host."""
    read_s = _sector_bytes(data) / device.memory_bandwidth_bytes_per_s
    return kernel_s + max(read_s, data.total_bytes / device.host.each_way_bytes_per_s)


def sent_s(data: Strided, device: Device, kernel_s: float) -> float:
    """Packed, sent and unpacked at the other side, by way of the device's buffer or of the host's: the faster."""
    wire_s = device.scaleout.latency_s + data.total_bytes / device.scaleout.each_way_bytes_per_s
    ways = packed_s(data, device, kernel_s), packed_to_host_s(data, device, kernel_s)
    return 2.0 * min(ways) + wire_s


def sent_by_copies_s(data: Strided, device: Device, copy_s: float) -> float:
    """The same with a copy for each run on both sides."""
    wire_s = device.scaleout.latency_s + data.total_bytes / device.scaleout.each_way_bytes_per_s
    return 2.0 * copied_s(data, device, copy_s) + wire_s


def _sector_bytes(data: Strided) -> float:
    """Bytes read to get at all runs: whole sectors, none of them twice where runs are close."""
    spanned = -(-data.run_bytes // SECTOR_BYTES) * SECTOR_BYTES
    return data.num_runs * min(spanned, float(max(data.stride_bytes, data.run_bytes)))
