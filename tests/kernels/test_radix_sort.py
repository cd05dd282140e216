"""Radix sort: passes cost what they read and write, and a launch a kernel."""

import pytest

from orrery.catalog.devices import get_device
from orrery.kernels.sort.radix import RadixSort, sort_s

A100 = get_device("a100-sxm-40gb")
SWEEP = RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1)
COUNTING = RadixSort(digit_bits=7, num_counting_reads=1, num_first_reads=0)


def test_crossings_of_the_two_ways():
    assert (SWEEP.num_passes(32), SWEEP.num_crossings(32)) == (4, 9)
    assert (COUNTING.num_passes(32), COUNTING.num_crossings(32)) == (5, 15)
    assert SWEEP.moved_bytes(1000, 32) == 36_000


def test_offsets_that_tiles_hand_on_count_little():
    tiled = RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1, num_tile_keys=8192)
    extra = tiled.moved_bytes(2**20, 32) - SWEEP.moved_bytes(2**20, 32)
    assert extra == 2 * 4 * 256 * 4 * 2**20 / 8192
    assert tiled.num_pass_operations == 2 + 2 * 256 / 8192
    assert (SWEEP.num_pass_operations, COUNTING.num_pass_operations) == (2, 3)


def test_short_tiles_hand_on_more_than_they_sort():
    short = RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1, num_tile_keys=256)
    assert short.num_pass_operations == 4
    assert short.moved_bytes(2**20, 32) > COUNTING.moved_bytes(2**20, 32)


def test_large_sorts_take_their_bytes_and_small_ones_their_launches():
    large, small = (sort_s(COUNTING, n, 32, A100) / sort_s(SWEEP, n, 32, A100) for n in (2**30, 256))
    assert large == pytest.approx(15 / 9, rel=0.01)
    assert small == pytest.approx(15 / 5, rel=0.01)
