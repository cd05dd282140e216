"""Products of few bits: bytes, passes, tiles and circuits against what can be counted by hand."""

import heapq

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError, UnknownName
from orrery.catalog.devices import get_device
from orrery.hardware import gates
from orrery.kernels.lowbit.lookup_unit import (
    Tile,
    gain,
    lookup_circuit,
    multiply_circuit,
    smallest_tile,
    table_counts,
    tiles_of,
)
from orrery.kernels.lowbit.mixed_blocks import MixedGemm, dealt_s, in_step_s, mixed_gemm_s, tile_times_s
from orrery.kernels.lowbit.one_bit import integer_gemm_s, nearest_integer_bits, one_bit_gemm_s
from orrery.kernels.lowbit.packed import Loads, packed_gemm_s, plain_gemm_s, straddling_frac, weight_load
from orrery.kernels.lowbit.product import integer_flops_per_s
from orrery.kernels.lowbit.systolic import Array, Element, array_on, element_circuit, run

BITS = range(1, 9)
A100, L40S = get_device("a100-sxm-80gb"), get_device("l40s")


def decode_s(bits, loads=Loads.PACKED):
    """A product of one token with a weight matrix far larger than any cache."""
    return float(packed_gemm_s(1, 28672, 8192, bits, L40S, loads))


def test_time_of_packed_loads_follows_the_true_bits():
    """Beyond the launch, every bit costs the same bytes: n k / 8 over the bandwidth that kernels reach."""
    steps = np.diff([decode_s(bits) for bits in BITS])
    np.testing.assert_allclose(steps, steps[0], rtol=0.01)
    assert steps[0] >= 28672 * 8192 / 8 / L40S.memory_bandwidth_bytes_per_s


@pytest.mark.parametrize("bits", BITS)
def test_padding_costs_the_next_power_of_two_and_nothing_more(bits):
    wider = next(width for width in (1, 2, 4, 8) if width >= bits)
    assert decode_s(bits, Loads.PADDED) == decode_s(wider, Loads.PADDED) == pytest.approx(decode_s(wider))
    assert (decode_s(bits, Loads.PADDED) > decode_s(bits) * 1.1) == (wider != bits)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("m", [1, 64, 4096])
def test_each_way_around_costs_more_than_the_one_before(bits, m):
    times = [float(packed_gemm_s(m, 4096, 4096, bits, A100, loads)) for loads in Loads]
    assert times == sorted(times)


def test_loads_that_wait_for_shared_memory_lose_at_least_its_passes():
    passes_s = 28672 * 8192 * 4 / (128 * L40S.compute_clock_hz * L40S.num_compute_units)
    assert decode_s(4, Loads.SERIAL) >= decode_s(4) + passes_s


def test_sixteen_bits_take_about_four_times_as_long_as_four():
    assert float(plain_gemm_s(1, 28672, 8192, L40S)) / decode_s(4) == pytest.approx(16 / 4.125, rel=0.1)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("word", [8, 16, 32])
def test_codes_across_borders_are_those_that_a_count_finds(bits, word):
    many = 32 * word
    crossing = sum(i * bits // word != (i * bits + bits - 1) // word for i in range(many))
    assert straddling_frac(bits, word) == pytest.approx(crossing / many)


def test_only_widths_that_cross_words_take_more_instructions():
    plain, crossing = weight_load(4, Loads.PACKED), weight_load(3, Loads.PACKED)
    assert crossing.num_instructions > plain.num_instructions == weight_load(3, Loads.PADDED).num_instructions
    with pytest.raises(OutOfRange, match="write 1 to 8"):
        weight_load(9, Loads.PACKED)


def test_rates_of_narrow_units_are_stated_or_refused():
    assert integer_flops_per_s(A100, 8) == A100.dense_flops_per_s["int8"]
    assert integer_flops_per_s(A100, 4) == pytest.approx(1248e12)
    assert integer_flops_per_s(A100, 1) == pytest.approx(4992e12)
    with pytest.raises(OutOfRange, match="no peak rate for 1-bit"):
        integer_flops_per_s(get_device("h100-sxm"), 1)


def test_passes_multiply_where_arithmetic_binds():
    four, sixteen = (float(one_bit_gemm_s(8192, 8192, 8192, bits, bits, A100)) for bits in (2, 4))
    assert sixteen / four == pytest.approx(4.0, rel=0.1)
    assert float(one_bit_gemm_s(8192, 8192, 8192, 2, 2, A100, is_fused=False)) > four * 1.5


def test_single_bits_beat_the_next_wider_unit_only_while_passes_are_few():
    """One-bit units are four times as fast as four-bit ones: two passes win, four are even, more lose."""
    four_bit = float(integer_gemm_s(8192, 8192, 8192, 4, A100))
    ratios = [four_bit / float(one_bit_gemm_s(8192, 8192, 8192, p, q, A100)) for p, q in ((1, 2), (2, 2), (3, 4))]
    assert ratios[0] > 1.5 > 1.05 > ratios[1] > 0.8 > 0.4 > ratios[2]
    assert [nearest_integer_bits(p, q) for p, q in ((1, 1), (1, 2), (4, 3), (2, 5))] == [1, 4, 4, 8]
    with pytest.raises(OutOfRange):
        nearest_integer_bits(9, 1)


def longest_first(times, units):
    """Each tile, longest first, to the processor that is free first, one by one."""
    free = [0.0] * units
    for time in sorted(times, reverse=True):
        heapq.heapreplace(free, free[0] + time)
    return max(free)


@pytest.mark.parametrize(
    ("narrow", "wide", "units"), [(1000, 37, 108), (5, 3, 4), (0, 11, 4), (12, 0, 5), (700, 700, 7)]
)
def test_even_dealing_is_longest_first_and_within_a_tile_of_the_bound(narrow, wide, units):
    times = np.array([2.0] * wide + [1.0] * narrow)
    even = dealt_s([(2.0, wide), (1.0, narrow)], units)
    assert even == pytest.approx(longest_first(times, units))
    bound = max(times.sum() / units, times.max())
    assert bound <= even + 1e-12 <= bound + times.max()
    assert even <= in_step_s(times, units) + 1e-12


def test_in_step_a_few_wide_tiles_hold_up_every_round():
    few, all_wide = (MixedGemm(m=4096, n=8192, k=8192, wide_frac=f) for f in (1 / 16, 1.0))
    step = [mixed_gemm_s(op, A100, is_even=False) for op in (few, all_wide)]
    assert step[0] > 0.9 * step[1]
    assert mixed_gemm_s(few, A100) < 0.85 * step[0]


def test_more_wide_blocks_never_take_less_time():
    times = [mixed_gemm_s(MixedGemm(m=256, n=4096, k=4096, wide_frac=f), A100) for f in np.linspace(0, 1, 9)]
    assert times == sorted(times)
    op = MixedGemm(m=256, n=4096, k=4096, wide_frac=0.25)
    assert tile_times_s(op, A100).size == 2 * 32 * 32
    assert len(np.unique(tile_times_s(op, A100))) == 2
    with pytest.raises(ScenarioError):
        MixedGemm(m=1, n=1, k=128, wide_frac=1.5)


def test_half_of_the_answers_are_stored():
    counts = table_counts(Tile(m=2, n=64, k=4), 16)
    assert (counts.num_entries, counts.table_bits, counts.weight_bits) == (16, 256, 256)
    assert (counts.num_lookups, counts.num_uses) == (128, 64)


@pytest.mark.parametrize("entries", ["fp16", "int8"])
def test_elongated_tiles_take_the_least_silicon(entries):
    """512 products a cycle: two tokens, 64 outputs, four inputs; a square of the same four inputs takes more."""
    assert smallest_tile(512, entries) == Tile(m=2, n=64, k=4)
    area = {tile: lookup_circuit(tile, entries).area_m2 for tile in tiles_of(512) if tile.k == 4}
    assert area[Tile(m=2, n=64, k=4)] < area[Tile(m=8, n=16, k=4)] < area[Tile(m=64, n=2, k=4)]
    assert {tile.num_products for tile in tiles_of(512)} == {512}


def test_looking_up_pays_for_few_weight_bits_only():
    lookup, multiply = Tile(m=2, n=64, k=4), Tile(m=8, n=4, k=16)
    gains = [gain(lookup, bits, "fp16", multiply, "fp16") for bits in (1, 2, 4, 8)]
    assert gains[0].density_ratio == pytest.approx(8 * gains[3].density_ratio)
    assert gains[0].energy_ratio > 5 > 2 > gains[3].energy_ratio
    assert multiply_circuit(multiply, "int8").area_m2 < multiply_circuit(multiply, "fp16").area_m2


def test_a_multiplier_is_its_shifts_and_additions():
    """Both are arrays of partial bits: what shift-and-add saves is not the adding but the width."""
    multiply, shift = gates.multiplier(4, 8), gates.shift_adder(4, 8)
    assert shift.area_m2 == pytest.approx(multiply.area_m2, rel=0.1)
    assert gates.multiplier(8, 8) == gates.arithmetic("int8_multiply")
    assert gates.adder(32) == gates.arithmetic("int32_add")
    assert gates.adder(8).area_m2 == pytest.approx(gates.arithmetic("int8_add").area_m2, rel=0.1)
    with pytest.raises(UnknownName):
        gates.arithmetic("int7_add")
    with pytest.raises(OutOfRange):
        gates.adder(0)


def last_product_cycle(m, side):
    """The cycle in which the farthest element takes the last token: tokens enter a row later in every row."""
    return max(token + row + column + 1 for token in range(m) for row in range(side) for column in range(side))


@pytest.mark.parametrize(("m", "side"), [(1, 1), (3, 4), (16, 8)])
def test_cycles_of_one_pass_are_those_of_the_last_element(m, side):
    array = Array(element=Element.SHIFT_ADDED, weight_bits=4, activation_bits=8, side=side)
    assert run(m, side, side, array).num_cycles == last_product_cycle(m, side)
    assert run(m, 3 * side, 2 * side, array).num_cycles == 6 * last_product_cycle(m, side)


def test_scaling_groups_makes_larger_arrays_on_the_same_silicon():
    area = element_circuit(Element.ELEMENT_SCALED, 4, 8).area_m2 * 128**2
    each, group, shift = (array_on(area, element, 4, 8) for element in Element)
    assert each.side == 128 < group.side <= shift.side
    slow, fast = (run(4096, 4096, 4096, array) for array in (each, shift))
    assert slow.num_cycles > 1.3 * fast.num_cycles
    assert slow.compute_j > fast.compute_j
    assert slow.off_chip_j == fast.off_chip_j
    with pytest.raises(OutOfRange, match="more silicon"):
        array_on(0.0, Element.SHIFT_ADDED, 4, 8)
