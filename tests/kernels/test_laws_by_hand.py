"""Small laws of kernels on devices of round numbers: rates in turns, tiles of two widths, arrays, sorts, queues."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.hardware.gates import arithmetic, memory_j_per_bit
from orrery.kernels.attention import overlapped
from orrery.kernels.attention.prefill import exponentials_per_s
from orrery.kernels.cluster.networks import ds_cnn, resnet8
from orrery.kernels.columns import flat_columns
from orrery.kernels.energy._kernel import drawn_frac
from orrery.kernels.gather import line_bytes, useful_frac
from orrery.kernels.launches import HOSTS, is_queuing
from orrery.kernels.launches import run as queue
from orrery.kernels.lowbit import mixed_blocks as mixed
from orrery.kernels.lowbit import systolic
from orrery.kernels.lowbit.lookup_unit import (
    Tile,
    gain,
    lookup_circuit,
    multiply_circuit,
    smallest_tile,
    table_counts,
    tiles_of,
)
from orrery.kernels.lowbit.product import integer_flops_per_s
from orrery.kernels.ops import AttentionPrefill
from orrery.kernels.residual._kernel import faded, total
from orrery.kernels.resolve import find
from orrery.kernels.sort.radix import WAYS, RadixSort
from orrery.numerics.registry import get_format

# --- attention by the rates of instructions

H100 = get_device("h100-sxm")
SHAPE = overlapped.Shape(num_heads=3, num_queries=200, num_keys=300, num_head_features=64)


@pytest.mark.parametrize(
    ("sizes", "scores"),
    [
        ({}, 200 * 300 - 199 * 200 / 2),
        ({"is_causal": False}, 200 * 300),
        ({"window_tokens": 50}, 200 * 50),  # every query sees 101 keys or more
        ({"window_tokens": 120}, (101 + 119) * 19 / 2 + 181 * 120),  # 101, 102 ... 119 keys, then 120
        ({"window_tokens": 300}, 200 * 300 - 199 * 200 / 2),
    ],
)
def test_what_turns_cost_beside_overlap(sizes, scores):
    """Three heads of two blocks of queries are six on 132 processors: a wave that is not full takes a whole one."""
    op = AttentionPrefill(
        batch=1,
        query_tokens=200,
        context_tokens=300,
        num_heads=3,
        num_kv_heads=1,
        head_size=96,
        value_head_size=32,
        format="bf16",
        kv_format="bf16",
        **sizes,
    )
    peak = H100.dense_flops_per_s["bf16"]
    others = 1 / exponentials_per_s(H100) + 3.5 * 2 / H100.vector_flops_per_s
    longer = 4 * 64 / (0.629 * peak) + others - max(4 * 64 / peak, others)
    assert overlapped.waiting_s(op, H100) == pytest.approx(3 * scores * longer * 132 / 6)
    assert longer > 0


def test_scores_above_the_diagonal_are_not_computed():
    """200 queries on 300 keys less 1 + 2 + ... + 199; two blocks of 128 queries a head."""
    assert SHAPE.num_scores == 3 * (200 * 300 - 199 * 200 / 2)
    assert SHAPE.num_blocks == 3 * 2
    whole = overlapped.Shape(num_heads=3, num_queries=200, num_keys=300, num_head_features=64, is_causal=False)
    assert whole.num_scores == 3 * 200 * 300


@pytest.mark.parametrize("is_overlapped", [True, False])
def test_products_exponentials_and_vector_work_in_turns_or_at_once(is_overlapped):
    peak = H100.dense_flops_per_s["bf16"]
    frac = 1.0 if is_overlapped else 0.629
    scores = SHAPE.num_scores
    products = scores * 4 * 64 / (frac * peak)
    exponentials = scores / exponentials_per_s(H100)
    vector = scores * 3.5 * 2 / H100.vector_flops_per_s
    busy = max(products, exponentials + vector) if is_overlapped else products + exponentials + vector
    found = overlapped.run(SHAPE, H100, get_format("bf16"), is_overlapped=is_overlapped)
    waves = 6 / H100.num_compute_units
    assert found.num_waves == waves
    assert found.time_s == pytest.approx(busy / waves)  # part of a wave takes a whole one
    parts = (found.products_s, found.exponentials_s, found.vector_s, found.flops)
    assert parts == pytest.approx((products, exponentials, vector, scores * 4 * 64))
    assert overlapped.products_frac(get_device("a100-sxm-80gb"), is_overlapped=False) == 1
    with pytest.raises(OutOfRange, match="are a GPU's"):
        overlapped.run(SHAPE, get_device("tpu-v5e"), get_format("bf16"), is_overlapped=True)


def test_exponentials_are_sixteen_a_clock_or_one_for_sixteen_flops():
    narrow = SimpleNamespace(num_compute_units=4, compute_clock_hz=10.0, vector_flops_per_s=1e3)
    assert exponentials_per_s(narrow) == 640
    assert exponentials_per_s(SimpleNamespace(**vars(narrow) | {"vector_flops_per_s": 32e3})) == 2000


# --- tiles of four and eight bits


def test_blocks_of_channels():
    op = mixed.MixedGemm(m=10, n=200, k=1000, wide_frac=0.25)
    assert (op.num_blocks, op.num_wide) == (8, 2)


def test_tiles_in_step_and_evenly():
    """Five tiles of 4, 1, 1, 1 and 1 s on two processors: rounds of 4, 1 and 1; dealt out, 4 beside four of 1."""
    times = np.array([4.0, 1.0, 1.0, 1.0, 1.0])
    assert mixed.in_step_s(times, 2) == 6
    assert mixed.dealt_s([(4.0, 1), (1.0, 4)], 2) == 4
    assert mixed.dealt_s([(1.0, 7)], 2) == 4
    assert mixed.in_step_s(np.ones(7), 2) == 4
    assert mixed.dealt_s([(3.0, 5), (1.0, 100)], 5) == 3 + 20
    assert mixed.dealt_s([(3.0, 5), (1.0, 101)], 5) == 3 + 21


@pytest.mark.parametrize(("m", "rows"), [(10, 16), (16, 16), (17, 32), (100, 128), (129, 128)])
def test_times_of_tiles(m, rows):
    """128 columns and channels: products at both rates, three instructions a sum, and one a weight that is widened."""

    device = get_device("a100-sxm-80gb")
    op = mixed.MixedGemm(m=m, n=200, k=512, wide_frac=0.25)
    peak = find(device, "gemm", "int8").constants["peak_frac"] / device.num_compute_units
    flops = 2 * rows * 128 * 128
    each = 2 * device.num_compute_units / device.vector_flops_per_s
    wide = max(flops / (peak * integer_flops_per_s(device, 8)), (rows * 128 * 3 + 128 * 128) * each)
    narrow = max(flops / (peak * integer_flops_per_s(device, 4)), rows * 128 * 3 * each)
    outputs = math.ceil(m / rows) * 2
    assert mixed.tile_times_s(op, device) == pytest.approx(np.tile([wide, narrow, narrow, narrow], outputs))


# --- units and arrays of silicon


def test_tables_of_a_tile():
    """2 tokens, 3 outputs, 4 inputs: 8 entries a token, 12 weights, 6 look-ups."""
    held = table_counts(Tile(m=2, n=3, k=4), 16)
    assert (held.num_entries, held.table_bits, held.weight_bits) == (16, 256, 12)
    assert (held.num_lookups, held.num_uses) == (6, 3)
    assert Tile(m=2, n=3, k=4).num_products == 24


def test_tiles_of_a_product_are_powers_of_two():
    assert {(t.m, t.n, t.k) for t in tiles_of(4)} == {(1, 1, 4), (1, 2, 2), (1, 4, 1), (2, 1, 2), (2, 2, 1), (4, 1, 1)}
    found = smallest_tile(64, "int8")
    assert found.num_products == 64
    areas = [lookup_circuit(t, "int8").area_m2 for t in tiles_of(64) if t.k <= 8]
    assert lookup_circuit(found, "int8").area_m2 == min(areas)
    assert smallest_tile(64, "int8", most_inputs=1).k == 1


def test_gains_are_of_products_on_silicon_and_of_a_joule():
    """24 products a cycle in a quarter of them for 4 bits, against 24 of multipliers."""
    lookup, multiply = Tile(m=2, n=3, k=4), Tile(m=2, n=2, k=6)
    ours, theirs = lookup_circuit(lookup, "int8"), multiply_circuit(multiply, "fp16")
    found = gain(lookup, 4, "int8", multiply, "fp16")
    assert found.density_ratio == pytest.approx((6 / ours.area_m2) / (24 / theirs.area_m2))
    assert found.energy_ratio == pytest.approx((6 / ours.energy_j) / (24 / theirs.energy_j))


@pytest.mark.parametrize(
    ("element", "scalings"),
    [(systolic.Element.ELEMENT_SCALED, 0), (systolic.Element.GROUP_SCALED, 2), (systolic.Element.SHIFT_ADDED, 2)],
)
def test_a_product_on_an_array(element, scalings):
    """10 x 20 x 200 on 16 x 16: 13 x 2 passes of 10 + 30 cycles; groups of 128 inputs scale each result twice."""
    array = systolic.Array(element=element, weight_bits=4, activation_bits=8, side=16)
    found = systolic.run(10, 20, 200, array)
    assert found.num_cycles == 13 * 2 * 40
    each = systolic.element_circuit(element, 4, 8).energy_j
    scale = (arithmetic("fp16_multiply") + arithmetic("fp16_add")).energy_j
    assert found.compute_j == pytest.approx(10 * 20 * 200 * each + scalings * 200 * scale)
    a, w, c = 10 * 200 * 8, 20 * 200 * 4, 200
    assert found.on_chip_j == pytest.approx((a * 2 + w + 2 * c * 32 * 13) * memory_j_per_bit("cache_8_kib"))
    assert found.off_chip_j == pytest.approx((a + w + c * 16) * memory_j_per_bit("dram"))
    assert found.energy_j == found.compute_j + found.on_chip_j + found.off_chip_j


def test_the_largest_array_on_so_much_silicon():
    each = systolic.element_circuit(systolic.Element.GROUP_SCALED, 4, 8).area_m2
    assert systolic.array_on(100.5 * each, systolic.Element.GROUP_SCALED, 4, 8).side == 10
    assert systolic.array_on(99.5 * each, systolic.Element.GROUP_SCALED, 4, 8).side == 9
    with pytest.raises(OutOfRange, match="more silicon"):
        systolic.array_on(0.5 * each, systolic.Element.GROUP_SCALED, 4, 8)


# --- gathers, queues, sorts, networks


def test_lines_that_a_memory_fetches():
    assert line_bytes(H100) == 32
    assert line_bytes(get_device("gaudi3")) == 256
    assert useful_frac(100.0, 32.0) == 100 / 128
    with pytest.raises(OutOfRange, match="known of NVIDIA"):
        line_bytes(get_device("mi300x"))


def test_kernels_queue_behind_a_slow_device():
    """Launched at 1, 2 and 3 s, there 0.5 s later: kernels of 3, 1 and 1 s start at 1.5, 4.5 and 5.5."""
    found = queue(np.array([3.0, 1.0, 1.0]), 1.0, 0.5)
    assert found.latency_s == 6.5
    assert found.launch_and_queuing_s == 0.5 + 2.5 + 2.5
    assert found.idle_frac == pytest.approx(1.5 / 6.5)
    assert is_queuing(found, 3, 0.5)
    quick = queue(np.array([0.1, 0.1, 0.1]), 1.0, 0.5)
    assert quick.launch_and_queuing_s == pytest.approx(1.5)
    assert not is_queuing(quick, 3, 0.5)
    assert [HOSTS[name].launch_s for name in ("epyc", "xeon", "grace")] == [2.2605e-6, 2.3746e-6, 2.4e-6]
    assert [3.8 / HOSTS[name].dispatch_ratio for name in ("epyc", "xeon", "grace")] == pytest.approx([3.7, 3.8, 3.4])


def test_passes_of_a_radix_sort():
    """20-bit keys by digits of 8: 3 passes in and out behind a read; offsets of 256 digits for 100 keys."""
    sweep = RadixSort(digit_bits=8, num_counting_reads=0, num_first_reads=1, num_tile_keys=100)
    assert (sweep.num_passes(20), sweep.num_crossings(20), sweep.num_kernels(20)) == (3, 7, 4)
    assert sweep.num_offset_words == 5.12
    assert sweep.num_pass_operations == 7.12
    assert sweep.moved_bytes(10, 20) == pytest.approx(10 * (7 * 20 / 8 + 3 * 5.12 * 4))
    apart = RadixSort(digit_bits=7, num_counting_reads=1, num_first_reads=0)
    assert (apart.num_passes(20), apart.num_crossings(20), apart.num_kernels(20)) == (3, 9, 9)
    assert (apart.num_offset_words, apart.num_pass_operations, apart.moved_bytes(10, 20)) == (0, 3, 10 * 9 * 2.5)
    assert (WAYS["onesweep"].digit_bits, WAYS["onesweep"].num_tile_keys, WAYS["cub"].digit_bits) == (8, 256 * 21, 7)


def test_tiny_networks_layer_by_layer():
    """Multiply-adds forward; training counts each layer two or three times."""
    layers = list(resnet8())
    forward = [layer.num_macs // (2 if layer.is_first else 3) for layer in layers]
    stem, first, second, third = 1024 * 9 * 3 * 16, 1024 * 9 * 256, 256 * 9, 64 * 9
    assert forward == [
        stem,
        first,
        first,
        second * 16 * 32,
        second * 32 * 32,
        256 * 16 * 32,
        third * 32 * 64,
        third * 64 * 64,
        64 * 32 * 64,
        640,
    ]
    assert [layer.is_first for layer in layers] == [True] + [False] * 9
    words = [layer.num_macs // (2 if layer.is_first else 3) for layer in ds_cnn()]
    assert words == [125 * 40 * 64, *[125 * 9 * 64, 125 * 64 * 64] * 4, 64 * 12]
    assert [layer.is_depthwise for layer in ds_cnn()] == [False, *[True, False] * 4, False]


# --- what many rules share


def test_columns_are_spread_and_flat():
    shape, flat = flat_columns((np.array([[1], [2]]), np.array([3, 4, 5]), 7), np.float64)
    assert shape == (2, 3)
    assert [f.tolist() for f in flat] == [[1, 1, 1, 2, 2, 2], [3, 4, 5, 3, 4, 5], [7] * 6]
    assert flat_columns((1, 2), np.int64)[0] == ()


def test_trees_are_walked_and_summed():
    """One tree splits x0 at 1 (leaves 10 and 20), the other x1 at 5 (100 and 200); equal goes to the low side."""
    feature = np.array([0, 0, 0, 1, 0, 0], np.int32)
    threshold = np.array([1, np.inf, np.inf, 5, np.inf, np.inf], np.float32)
    low = np.array([1, 1, 2, 4, 4, 5], np.int32)
    value = np.array([0, 10, 20, 0, 100, 200], np.float32)
    rows = np.array([[1.0, 5.0], [1.5, 5.0], [1.0, 6.0], [9.0, 9.0]] * 3)
    out = np.full(12, 7.0)
    total(rows, np.array([0, 3], np.int32), np.array([1, 1], np.int32), feature, threshold, low, value, out)
    assert out.tolist() == [110, 120, 210, 220] * 3


def test_corrections_fade_over_a_factor_of_two():
    out = np.ones(7)
    faded(np.array([8.0, 4.0, 16.0, 24.0, 3.0, 32.0, 0.0]), 4.0, 16.0, out)
    assert out.tolist() == pytest.approx([1, 1, 1, 1 - math.log2(1.5), 1 - math.log2(4 / 3), 0, 0])


def test_the_share_of_power_that_work_draws():
    assert drawn_frac(1.0, 2.25, 4.0, 0.5) == 1
    assert drawn_frac(1.0, 0.25, 4.0, 0.5) == 0.75
    assert drawn_frac(1.0, 1.0, 4.0, 1.0) == 0.5
    assert drawn_frac(1.0, 1.0, 0.0, 1.0) == 0
