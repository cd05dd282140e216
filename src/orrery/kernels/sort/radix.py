"""Least-significant-digit radix sort on a device: the passes that each way of it makes over the keys.

A pass sorts by one digit and keeps the order of equal digits. Apart, a pass reads all keys to count digits, then reads
them again and writes them in place: three crossings. In one sweep, all digits are counted in a single read before the
first pass, and a block learns its offsets from those before it (one word a digit and tile, written and read), so that a
pass reads once and writes once. Adinets and Merrill, arXiv 2206.01784.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.hardware.device import Device
from orrery.kernels.elementwise.rule import calibration

OFFSET_BYTES = 4.0
STREAM = "add"
"""The element-wise kind whose measured share of the bandwidth stands for kernels that stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RadixSort:
    """A way to sort by digits of ``digit_bits``: how often keys are read to be counted, and what blocks hand on."""

    digit_bits: int
    num_counting_reads: int  # in every pass
    num_first_reads: int  # before the first pass
    num_tile_keys: int = 0  # keys of a block that looks back for its offsets; 0: none does

    def num_passes(self, key_bits: int) -> int:
        """Digits of a key."""
        return -(-key_bits // self.digit_bits)

    def num_crossings(self, key_bits: int) -> float:
        """Times that every key is read or written."""
        return self.num_first_reads + self.num_passes(key_bits) * (2 + self.num_counting_reads)

    @property
    def num_offset_words(self) -> float:
        """Words that blocks hand on in one pass, written and read, for each key."""
        return 2.0 * 2.0**self.digit_bits / self.num_tile_keys if self.num_tile_keys else 0.0

    @property
    def num_pass_operations(self) -> float:
        """Keys and words of offsets that one pass reads or writes, for each key."""
        return 2.0 + self.num_counting_reads + self.num_offset_words

    def num_kernels(self, key_bits: int) -> int:
        """Launches of one sort: each pass its own, and counting kernels with the sums of what they counted."""
        return self.num_first_reads + self.num_passes(key_bits) * (1 + 2 * self.num_counting_reads)

    def moved_bytes(self, num_keys: float, key_bits: int) -> float:
        """Keys, and offsets that tiles hand on."""
        offsets = self.num_passes(key_bits) * self.num_offset_words * OFFSET_BYTES
        return num_keys * (self.num_crossings(key_bits) * key_bits / 8.0 + offsets)


WAYS: Mapping[str, RadixSort] = {
    "onesweep": RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1, num_tile_keys=5376),
    "cub": RadixSort(digit_bits=7, num_counting_reads=1, num_first_reads=0),
}
"""As CUB has them: ONESWEEP_RADIX_BITS and 256 threads of 21 keys of its OnesweepPolicy; PRIMARY_RADIX_BITS of keys
wider than a byte for devices that do not sweep (NVIDIA/cccl, device/dispatch/tuning/tuning_radix_sort.cuh)."""


def sort_s(way: RadixSort, num_keys: float, key_bits: int, device: Device) -> float:
    """Time of one sort: bytes at the share of the bandwidth that streaming kernels reach, and a launch a kernel."""
    measured = calibration(STREAM, device).constants
    streamed = measured["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s
    return way.moved_bytes(num_keys, key_bits) / streamed + way.num_kernels(key_bits) * measured["overhead_s"]
