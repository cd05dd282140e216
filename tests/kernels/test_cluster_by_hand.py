"""Loops on small cores, cycle by cycle."""

import pytest

from orrery.kernels.cluster.cores import Cores
from orrery.kernels.cluster.loops import Loop, loop_cycles
from orrery.kernels.cluster.matmul import Product, copy_cycles, cycles, depthwise_cycles
from orrery.kernels.cluster.training import ClusterLayer, step_cycles

ONE = Cores(num_cores=1, num_float_units=1)
FOUR = Cores(num_cores=4, num_float_units=2, num_load_cycles=1.5, num_banks=8, num_barrier_cycles=20.0)
CONFLICT = 1 + 3 / 16


def test_cores_share_units_and_banks():
    assert FOUR.conflict_ratio == CONFLICT
    assert FOUR.float_ratio == 2
    assert Cores(num_cores=2, num_float_units=4).float_ratio == 1
    assert Cores(num_cores=2, num_float_units=0).float_ratio == 0
    assert Cores(num_cores=2, num_float_units=2).conflict_ratio == 1


def tile(k, u, v, cores, lanes=1):
    """Loads of u + v words and u v multiply-adds a step, u v stores, 8 instructions around."""
    step = max((u + v) * cores.num_load_cycles * cores.conflict_ratio + u * v, u * v * cores.float_ratio)
    return -(-k // lanes) * step + u * v + 8


def test_a_product_takes_the_best_unrolling_of_rows_or_columns():
    """8 x 4 x 10 on 4 cores: 2 rows of 4 each in one tile of 2 x 4, or 8 of 1 column in two of 4 x 1."""
    by_rows, by_columns = tile(10, 2, 4, FOUR), 2 * tile(10, 4, 1, FOUR)
    assert by_rows < by_columns
    assert cycles(Product(m=8, n=4, k=10), FOUR, 1) == pytest.approx(by_rows)
    assert cycles(Product(m=4, n=8, k=10), FOUR, 1) == pytest.approx(by_rows)
    assert cycles(Product(m=8, n=4, k=10), FOUR, 4) == pytest.approx(tile(10, 2, 4, FOUR, 4))


def test_registers_bound_the_unrolling():
    """A tile of 4 x 4 needs 24 registers; with 23 the best is two of 4 x 2, which take 14."""
    tight = Cores(num_cores=1, num_float_units=1, num_registers=23)
    exact = Cores(num_cores=1, num_float_units=1, num_registers=24)
    assert cycles(Product(m=4, n=4, k=10), exact, 1) == tile(10, 4, 4, ONE)
    assert cycles(Product(m=4, n=4, k=10), tight, 1) == 2 * tile(10, 4, 2, ONE)


def test_left_over_results_are_made_one_by_one():
    assert cycles(Product(m=5, n=1, k=10), ONE, 1) == tile(10, 4, 1, ONE) + tile(10, 1, 1, ONE)
    # of 5 x 7 whole tiles of u x v leave so many around them
    ways = [(4, 4, 1, 19), (2, 4, 2, 19), (4, 2, 3, 11), (2, 2, 6, 11), (4, 1, 7, 7), (2, 1, 14, 7), (1, 4, 5, 15)]
    best = min(whole * tile(10, u, v, ONE) + left * tile(10, 1, 1, ONE) for u, v, whole, left in ways)
    assert cycles(Product(m=5, n=7, k=10), ONE, 1) == best
    assert Product(m=2, n=3, k=5).num_macs == 30


def test_depthwise_and_copies():
    """10 results of 9 taps on 4 cores: 3 each; a tap loads two words, multiplies, and turns the loop in two."""
    tap = 2 * 1.5 * CONFLICT + 1 + 2
    assert depthwise_cycles(10, 9, FOUR) == pytest.approx(3 * (9 * tap + 1 + 8))
    slow_units = Cores(num_cores=40, num_float_units=1)
    assert depthwise_cycles(10, 9, slow_units) == 9 * 40 + 9
    assert copy_cycles(100, FOUR) == pytest.approx(25 * (1 + 1.5) * CONFLICT)


@pytest.mark.parametrize(("is_first", "passes"), [(True, 2), (False, 3)])
def test_a_depthwise_layer_passes_two_or_three_times(is_first, passes):
    layer = ClusterLayer(positions=10, taps=9, inputs=4, outputs=4, is_depthwise=True, is_first=is_first)
    assert layer.num_macs == passes * 10 * 9 * 4
    assert step_cycles(layer, FOUR, 1) == pytest.approx(passes * depthwise_cycles(40, 9, FOUR))


@pytest.mark.parametrize(("taps", "lanes", "is_shaped"), [(1, 1, False), (2, 1, True), (1, 2, True), (9, 2, True)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_layer_is_its_products_and_their_shaping(taps, lanes, is_shaped, is_first):
    """Forward outputs x positions over windows, the weights' gradient over positions, the input's over outputs."""
    layer = ClusterLayer(positions=10, taps=taps, inputs=3, outputs=5, is_first=is_first)
    sizes = [(5, 10, 3 * taps), (5, 3 * taps, 10), (3, 10, 5 * taps)]
    expected = 0.0
    for m, n, k in sizes[: 2 if is_first else 3]:
        expected += cycles(Product(m=m, n=n, k=k), FOUR, lanes)
        expected += copy_cycles(n * k, FOUR) if is_shaped else 0
    assert step_cycles(layer, FOUR, lanes) == pytest.approx(expected)
    assert layer.num_macs == (2 if is_first else 3) * 10 * taps * 3 * 5


def test_a_loop_waits_for_shared_units_banks_and_the_serial_part():
    """10 turns on 4 cores are 3; a turn takes 2 operations of 2 cycles and 3 instructions with conflicts."""
    loop = Loop(name="sums", num_elements=10, num_floats=2.0, num_others=3.0, num_serial=1)
    turn = 2 * 2 + 3 * CONFLICT
    assert loop_cycles(loop, FOUR, 1.0) == pytest.approx(3 * turn + 4 * turn + 20)
    assert loop_cycles(loop, FOUR, 5.0) == pytest.approx(7 * (2 * 5 + 3 * CONFLICT) + 20)
    alone = Cores(num_cores=1, num_float_units=1, num_barrier_cycles=20.0)
    assert loop_cycles(loop, alone, 1.0) == 50
    two = Cores(num_cores=2, num_float_units=2, num_barrier_cycles=20.0)
    assert loop_cycles(loop, two, 1.0) == 5 * 5 + 2 * 5 + 20
