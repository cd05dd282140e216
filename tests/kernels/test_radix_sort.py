"""Radix sort: the keys come out in order, and passes cost what they read and write."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.catalog.devices import get_device
from orrery.kernels.sort.radix import RadixSort, sort_s, sorted_keys

A100 = get_device("a100-sxm-40gb")
SWEEP = RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1)
COUNTING = RadixSort(digit_bits=7, num_counting_reads=1, num_first_reads=0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=60), st.sampled_from([3, 7, 8]))
def test_keys_come_out_in_order(values, digit_bits):
    keys = np.array(values, dtype=np.uint32)
    found, moved = sorted_keys(keys, digit_bits)
    assert found.tolist() == sorted(values)
    assert moved == keys.size * (1 + 2 * -(-32 // digit_bits))


def test_crossings_of_the_two_ways():
    assert (SWEEP.num_passes(32), SWEEP.num_crossings(32)) == (4, 9)
    assert (COUNTING.num_passes(32), COUNTING.num_crossings(32)) == (5, 15)
    assert SWEEP.moved_bytes(1000, 32) == 36_000


def test_offsets_that_tiles_hand_on_count_little():
    tiled = RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1, num_tile_keys=8192)
    extra = tiled.moved_bytes(2**20, 32) - SWEEP.moved_bytes(2**20, 32)
    assert extra == 2 * 4 * 256 * 4 * 2**20 / 8192


def test_large_sorts_take_their_bytes_and_small_ones_their_launches():
    large, small = (sort_s(COUNTING, n, 32, A100) / sort_s(SWEEP, n, 32, A100) for n in (2**30, 256))
    assert large == pytest.approx(15 / 9, rel=0.01)
    assert small == pytest.approx(15 / 5, rel=0.01)
