"""Loops on a cluster of small cores: by hand, at their limits, and what more cores and lanes are worth."""

import pytest

from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.loops import Loop, loop_cycles
from orrery.kernels.cluster.matmul import Product, copy_cycles, cycles, depthwise_cycles
from orrery.kernels.cluster.training import ClusterLayer, step_cycles

ONE = Cores(num_cores=1, num_float_units=1)
EIGHT = Cores(num_cores=8, num_float_units=8)
SHARED = Cores(num_cores=8, num_float_units=4)
LARGE = Product(m=64, n=64, k=64)


def test_one_tile_by_hand():
    # 4 x 4 results, a step loads 8 words and starts 16 multiply-adds; 16 stores and 8 instructions around
    assert cycles(Product(m=4, n=4, k=10), ONE, 1) == 10 * 24 + 16 + 8
    assert cycles(Product(m=4, n=4, k=10), ONE, 2) == 5 * 24 + 16 + 8


def test_left_over_results_cost_more():
    assert cycles(Product(m=5, n=4, k=10), ONE, 1) == cycles(Product(m=4, n=5, k=10), ONE, 1)
    assert cycles(Product(m=5, n=4, k=10), ONE, 1) > 1.25 * cycles(Product(m=4, n=4, k=10), ONE, 1)


def test_eight_cores_and_two_lanes_are_at_most_sixteen_times_as_fast():
    assert cycles(LARGE, ONE, 1) / cycles(LARGE, EIGHT, 1) == pytest.approx(8.0)
    assert 1.7 < cycles(LARGE, EIGHT, 1) / cycles(LARGE, EIGHT, 2) < 2.0


def test_shared_units_bound_what_can_be_started():
    assert LARGE.num_macs / cycles(LARGE, SHARED, 1) < 4.0 < LARGE.num_macs / cycles(LARGE, EIGHT, 1) < 8.0


def test_banks_in_conflict_lengthen_loads():
    crowded = Cores(num_cores=8, num_float_units=8, num_banks=16)
    assert crowded.conflict_ratio == 1 + 7 / 32
    assert cycles(LARGE, crowded, 1) > cycles(LARGE, EIGHT, 1)
    assert copy_cycles(800, crowded) == pytest.approx(200 * (1 + 7 / 32))


def test_depthwise_starves():
    results, taps = 1024, 9
    assert results * taps / depthwise_cycles(results, taps, EIGHT) < 1.6


def test_a_training_step_is_three_products_and_the_first_layer_two():
    layer = ClusterLayer(positions=64, taps=9, inputs=16, outputs=16)
    first = ClusterLayer(positions=64, taps=9, inputs=16, outputs=16, is_first=True)
    assert layer.num_macs == 3 * 64 * 9 * 16 * 16
    assert first.num_macs / layer.num_macs == pytest.approx(2 / 3)
    assert step_cycles(first, SHARED, 2) < step_cycles(layer, SHARED, 2) < step_cycles(layer, SHARED, 1)


def test_a_loop_by_hand():
    loop = Loop(name="sums", num_elements=80, num_floats=2.0, num_others=3.0, num_serial=1)
    assert loop_cycles(loop, ONE, 10.0) == 80 * 23
    assert (
        loop_cycles(loop, Cores(num_cores=8, num_float_units=8, num_barrier_cycles=50.0), 10.0) == 10 * 23 + 8 * 23 + 50
    )
    assert loop_cycles(loop, Cores(num_cores=8, num_float_units=4), 1.0) == 10 * 7 + 8 * 7
