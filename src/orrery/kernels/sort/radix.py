"""Least-significant-digit radix sort on a device: the passes that each way of it makes over the keys.

A pass sorts by one digit and keeps the order of equal digits. Apart, a pass reads all keys to count digits, then reads
them again and writes them in place: three crossings. In one sweep, all digits are counted in a single read before the
first pass, and a block learns its offsets from those before it (one word a digit and tile, written and read), so that a
pass reads once and writes once. Adinets and Merrill, arXiv 2206.01784.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.device import Device
from orrery.kernels.elementwise.rule import calibration

Keys = NDArray[np.uint32]

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

    def moved_bytes(self, num_keys: float, key_bits: int) -> float:
        """Keys, and offsets that tiles hand on."""
        keys = self.num_crossings(key_bits) * num_keys * key_bits / 8.0
        if not self.num_tile_keys:
            return keys
        offsets = 2.0**self.digit_bits * OFFSET_BYTES * num_keys / self.num_tile_keys
        return keys + 2.0 * self.num_passes(key_bits) * offsets


def sort_s(way: RadixSort, num_keys: float, key_bits: int, device: Device) -> float:
    """Time of one sort: bytes at the share of the bandwidth that streaming kernels reach, and a launch a kernel."""
    measured = calibration(STREAM, device).constants
    kernels = way.num_first_reads + way.num_passes(key_bits) * (1 + 2 * way.num_counting_reads)
    streamed = measured["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s
    return way.moved_bytes(num_keys, key_bits) / streamed + kernels * measured["overhead_s"]


def sorted_keys(keys: Keys, digit_bits: int) -> tuple[Keys, int]:
    """The keys in order, by counting all digits first and one sweep a digit; and how many keys were read or written."""
    passes = -(-32 // digit_bits)
    mask = np.uint32((1 << digit_bits) - 1)
    digits = [(keys >> np.uint32(digit_bits * i)) & mask for i in range(passes)]
    starts = [np.cumsum(np.bincount(d, minlength=int(mask) + 1)) for d in digits]
    moved, current = keys.size, keys.copy()
    for i, ends in enumerate(starts):
        digit = (current >> np.uint32(digit_bits * i)) & mask
        first = np.concatenate(([0], ends[:-1]))
        placed = np.empty_like(current)
        rank = _rank_of_equals(digit)
        placed[first[digit] + rank] = current
        moved, current = moved + 2 * keys.size, placed
    return current, moved


def _rank_of_equals(digit: Keys) -> NDArray[np.int64]:
    """For each place, how many equal digits stand before it."""
    order = np.argsort(digit, kind="stable")
    ordered = digit[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    runs = np.diff(np.append(begins, digit.size))
    rank = np.empty(digit.size, dtype=np.int64)
    rank[order] = np.arange(digit.size) - np.repeat(begins, runs)
    return rank
