"""Dense products on a machine of round numbers, and the textbook's tiles, worked out by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.kernels import energy
from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.gemm.machine import OFF, machine_vector, num_units
from orrery.kernels.gemm.naive_tiles import Unit, _round, resident_blocks, tiled_run
from orrery.kernels.gemm.tiles import TILE_SETS, tile_set
from orrery.kernels.resolve import find
from orrery.numerics.registry import get_format

C = {
    "peak_frac": 0.5,
    "bandwidth_frac": 0.8,
    "overhead_s": 3.0,
    "feed_ratio": 2.0,
    "overlap_frac": 0.25,
    "step_s": 0.5,
    "split_s": 7.0,
    "ramp_s": 0.6,
    "reread_ratio": 1.5,
    "cache_ratio": 0.5,
    "cache_gain_frac": 0.4,
    "dequantise_ratio": 1.5,
    "max_splits": 2.0,
    "min_rows": 0.0,
    "gemv_rows": 0.0,
    "gemv_s": 1.0,
    "gemv_ratio": 0.5,
    "quantise_s": 2.0,
    "quantise_frac": 0.5,
    "host_s": 0.0,
}
MACHINE = {
    "units": 4.0,
    "flops": 1e6,
    "vector": 1e5,
    "bandwidth": 1e4,
    "cache": 1e5,
    "a_bytes": 2.0,
    "b_bytes": 1.0,
    "c_bytes": 4.0,
    "input_bytes": 1.0,
}


def row(m, n, k, *, batch=1, tiles=((64, 64),), is_cold=True, quantises=False, machine=None, **constants):
    """All columns of one product."""
    values = np.array([(C | constants)[name] for name in kernel.CONSTANTS])
    place = np.array([(MACHINE | (machine or {}))[name] for name in kernel.MACHINE])
    return kernel.scalar(m, n, k, batch, values, place, np.array(tiles, dtype=float), is_cold, quantises)


def dram_s(moved, again=0.0):
    """Bytes at 0.8 of the bandwidth, and a ramp of at most 0.6 s."""
    bare = (moved + again) / (0.8 * 1e4)
    return bare + 0.6 * bare / (bare + 0.6)


def terms_s(blocks, depth, dram, tile=(64.0, 64.0), splits=1):
    """Products, feeds and memory of so many blocks over four units; the longest, and a quarter of the others."""
    fluid = blocks * splits / 4.0
    waves = max(1.0, fluid)
    waves += 0.3 * (math.ceil(fluid) - waves)
    tm, tn = tile
    mma = waves * 2.0 * tm * tn * 4.0 / (0.5 * 1e6) * depth
    feed_each = max((tm * 2.0 + tn * 1.0) * 4.0 / (2.0 * 1e4), tn * 4.0 / (1.5 * 1e5))
    slots = max(1.0, min(8.0, 32768.0 / (tm * tn)))
    load = depth * max(waves * feed_each, max(0.5, waves * 0.5 / slots))
    top = max(mma, load, dram)
    return top + 0.25 * (mma + load + dram - top), mma, load


def test_one_product_by_hand():
    """100 x 200 x 50: 2 x 4 blocks of 64 x 64 over 4 units; a tile waits for 256 bytes of k, which are 128 elements."""
    out = row(100.0, 200.0, 50.0)
    moved = 100 * 50 * 2 + 50 * 200 * 1 + 100 * 200 * 4
    dram = dram_s(moved)
    time, mma, load = terms_s(8, 50 + 128, dram)
    flops = 2 * 100 * 200 * 50
    assert out[kernel.TIME] == pytest.approx(3 + time, rel=1e-12)
    assert out[[kernel.MMA, kernel.FEED, kernel.DRAM]] == pytest.approx([mma, load, dram], rel=1e-12)
    assert out[[kernel.FLOPS, kernel.BYTES, kernel.OVERHEAD]].tolist() == [flops, moved, 3]
    assert out[[kernel.COMPUTE, kernel.MEMORY]] == pytest.approx([flops / 1e6, moved / 1e4], rel=1e-12)
    assert out[kernel.FILLED] == pytest.approx(100 * 200 / (8 * 64 * 64), rel=1e-12)
    assert (out[kernel.WAVES], out[kernel.CHOICE]) == (2.0, 1.0)


def test_a_batch_multiplies_blocks_bytes_and_work():
    out = row(100.0, 200.0, 50.0, batch=3)
    moved = 3 * (100 * 50 * 2 + 50 * 200 * 1 + 100 * 200 * 4)
    time, _, _ = terms_s(24, 178, dram_s(moved))
    assert out[kernel.TIME] == pytest.approx(3 + time, rel=1e-12)
    assert out[[kernel.FLOPS, kernel.BYTES]].tolist() == [3 * 2e6, moved]


def test_part_of_a_wave_counts_as_one_and_a_part_of_the_next_as_three_tenths():
    for n, blocks in ((200.0, 4), (310.0, 5)):
        out = row(60.0, n, 50.0)
        moved = 60 * 50 * 2 + 50 * n + 60 * n * 4
        assert out[kernel.TIME] == pytest.approx(3 + terms_s(blocks, 178, dram_s(moved))[0], rel=1e-12)
        assert out[kernel.WAVES] == blocks / 4


def test_k_is_split_where_units_are_left_and_partial_sums_are_added():
    """One block and k of 128 in two halves; 8 bytes a sum over 3 times the bandwidth for each part, and 0.01 s."""
    out = row(60.0, 60.0, 128.0, split_s=0.01)
    moved = 60 * 128 * 2 + 128 * 60 + 60 * 60 * 4
    whole, _, _ = terms_s(1, 128 + 128, dram_s(moved))
    halves, _, _ = terms_s(1, 64 + 128, dram_s(moved), splits=2)
    halves += 0.01 + 2 * 8 * 60 * 60 / (3 * 1e4)
    assert halves < whole
    assert out[kernel.TIME] == pytest.approx(3 + halves, rel=1e-12)
    assert out[kernel.CHOICE] == 2.0
    short = row(60.0, 60.0, 127.0, split_s=0.01)
    assert short[kernel.CHOICE] == 1.0
    assert row(60.0, 60.0, 128.0, split_s=0.01, max_splits=1.0)[kernel.CHOICE] == 1.0


def test_small_tiles_share_a_unit_and_narrow_weights_are_unpacked_by_its_lanes():
    """Tiles of 16 x 16: eight slots at most. A slow vector unit binds the feed at 64 columns a wave."""
    out = row(100.0, 200.0, 50.0, tiles=((16, 16),))
    moved = 100 * 50 * 2 + 50 * 200 + 100 * 200 * 4
    time, _, load = terms_s(7 * 13, 178, dram_s(moved), tile=(16.0, 16.0))
    assert out[kernel.TIME] == pytest.approx(3 + time, rel=1e-12)
    assert out[kernel.FEED] == pytest.approx(load, rel=1e-12)
    slow = row(100.0, 200.0, 50.0, machine={"vector": 1e2})
    assert slow[kernel.FEED] == pytest.approx(178 * 2 * 64 * 4 / (1.5 * 1e2), rel=1e-12)


def test_a_library_that_looks_at_m_takes_no_smaller_tile():
    tiles = ((16, 64), (32, 64), (64, 64))
    free = row(100.0, 200.0, 50.0, tiles=tiles)
    held = row(100.0, 200.0, 50.0, tiles=tiles, min_rows=64.0)
    assert held[kernel.CHOICE] == 201.0
    assert free[kernel.TIME] <= held[kernel.TIME]
    assert row(20.0, 200.0, 50.0, tiles=tiles, min_rows=64.0)[kernel.CHOICE] in (101.0, 201.0)


def test_few_rows_take_a_kernel_without_tiles():
    """Multiply-adds at half of the vector rate, beside the bare bytes."""
    out = row(2.0, 200.0, 50.0, gemv_rows=2.0)
    bare = (2 * 50 * 2 + 50 * 200 + 2 * 200 * 4) / (0.8 * 1e4)
    products = 2 * 200 * 50 / (0.5 * 1e5)
    assert out[kernel.TIME] == pytest.approx(1 + max(bare, products), rel=1e-12)
    assert out[[kernel.MMA, kernel.FEED, kernel.FILLED, kernel.WAVES, kernel.CHOICE]].tolist() == [
        products,
        0,
        1,
        0,
        -1,
    ]
    assert out[kernel.OVERHEAD] == 1
    slow = row(2.0, 200.0, 50.0, gemv_rows=2.0, gemv_ratio=0.05)
    assert slow[kernel.TIME] == pytest.approx(1 + 10 * products, rel=1e-12)
    assert row(3.0, 200.0, 50.0, gemv_rows=2.0)[kernel.CHOICE] == 1.0


def test_an_input_is_quantised_in_front():
    """2 bytes in and 1 out at half of the bandwidth, and a launch of 2 s."""
    whole, bare = row(100.0, 200.0, 50.0, quantises=True, batch=3), row(100.0, 200.0, 50.0, batch=3)
    pass_s = 2 + 3 * 100 * 50 * (2 + 1) / (0.5 * 1e4)
    assert whole[kernel.TIME] - bare[kernel.TIME] == pytest.approx(pass_s, rel=1e-9)
    assert whole[kernel.OVERHEAD] == 5


@pytest.mark.parametrize(
    ("cache", "miss"),
    [
        (1e9, 0.6),  # five weights, the input and the result fit half of the cache
        (1e4, 1.0),
        (2e5, 1.0),  # 140,000 bytes of 100,000
        (4e5, 1 - 0.4 * (2 - 2 * 140000 / 2e5)),
    ],
)
def test_a_loop_finds_some_of_its_bytes_in_the_cache(cache, miss):
    out = row(100.0, 200.0, 50.0, is_cold=False, machine={"cache": cache}, reread_ratio=0.0)
    assert out[kernel.DRAM] == pytest.approx(dram_s(miss * 100000), rel=1e-12)


@pytest.mark.parametrize(("cache", "share"), [(1e4, 1.0), (1.25e4, 0.6), (3e4, 0.0)])
def test_operands_too_big_for_the_cache_are_read_again(cache, share):
    """The smaller is 10,000 bytes, of each of 2 batches; tiles of 128 x 128 on 4 units read m n k (2 + 1) / 256."""
    out = row(100.0, 200.0, 50.0, batch=2, machine={"cache": cache}, is_cold=True)
    once = 2 * (100 * 50 * 2 + 50 * 200)
    again = 2 * 100 * 200 * 50 * 3 / math.sqrt(4 * 128 * 128) - once
    assert again < 0  # so small a product reads nothing twice
    large = row(1000.0, 2000.0, 5.0, machine={"cache": cache})
    once = 1000 * 5 * 2 + 5 * 2000
    again = 1000 * 2000 * 5 * 3 / math.sqrt(4 * 128 * 128) - once
    assert again > 0
    moved = once + 1000 * 2000 * 4
    assert large[kernel.DRAM] == pytest.approx(dram_s(moved, 1.5 * again * share), rel=1e-12)
    assert out[kernel.DRAM] == pytest.approx(dram_s(2 * 100000), rel=1e-12)


def test_products_of_nothing_take_nothing():
    assert not row(0.0, 200.0, 50.0).any()
    assert row(1.0, 1.0, 1.0)[kernel.TIME] > 3


def test_features_of_a_product():
    """Logarithms of sizes, shares of the time, waves, tile and splits, bytes over the cache, the device's balance."""
    rows = np.zeros((3, kernel.COLUMNS))
    rows[0, [kernel.TIME, kernel.MMA, kernel.FEED, kernel.DRAM, kernel.OVERHEAD]] = 8.0, 4.0, 2.0, 1.0, 0.5
    rows[0, [kernel.WAVES, kernel.FILLED, kernel.CHOICE, kernel.BYTES]] = 2.5, 0.75, 304.0, 5e4
    rows[1, [kernel.TIME, kernel.CHOICE]] = 8.0, -1.0
    machine = np.array([MACHINE[name] for name in kernel.MACHINE])
    x = np.full((3, len(kernel.FEATURES)), 9.0)
    sizes = (np.array([4.0, 4.0, 4.0]), np.array([16.0, 16.0, 16.0]), np.array([8.0, 8.0, 8.0]))
    kernel.features(*sizes, rows, machine, x)
    log = math.log2
    shares = [0.5, 0.25, 0.125, 0.0625]
    expected = [2, 4, 3, 7, 6, 5, 1, *shares, log(2.5), 3 / 2.5, 0.75, 3, 4, 0.5, log(100)]
    assert x[0].tolist() == pytest.approx(expected, rel=1e-12)
    assert x[1, 7:17].tolist() == [0, 0, 0, 0, -1, 0, 0, -1, 99, 0]
    assert not x[2].any()


def test_a_big_matrix_unit_counts_as_several():
    """16,384 FLOPs a cycle are one unit's: at 1 MHz and 1e12 FLOP/s there are 61.04."""
    device = SimpleNamespace(
        num_compute_units=8, compute_clock_hz=1e6, dense_flops_per_s={"bf16": 1e12, "fp8": 9e12}, vector_flops_per_s=5.0
    )
    assert num_units(device) == pytest.approx(1e12 / 16384 / 1e6)
    assert num_units(SimpleNamespace(**vars(device) | {"num_compute_units": 100})) == 100
    assert num_units(SimpleNamespace(**vars(device) | {"num_compute_units": 0, "dense_flops_per_s": {}})) == 1


def test_bytes_of_operands_by_format():
    """A, B, C and the quantised input: narrow ones leave results in 16 bits, packed weights meet 16-bit inputs."""
    device = get_device("h100-sxm")
    assert machine_vector(device, get_format("bf16"))[5:].tolist() == [2, 2, 2, 2]
    assert machine_vector(device, get_format("fp32"))[5:].tolist() == [4, 4, 4, 4]
    assert machine_vector(device, get_format("fp8"))[5:].tolist() == [1, 1, 2, 1]
    packed = get_format("int4_weight_only")
    assert machine_vector(device, packed)[5:].tolist() == [2, packed.bytes_per_element, 2, 2]


def test_mechanisms_that_a_group_lacks_take_no_time():
    bare = row(100.0, 200.0, 50.0, quantises=True, **OFF)
    assert bare[kernel.OVERHEAD] == 3
    moved = 100 * 50 * 2 + 50 * 200 + 100 * 200 * 4
    assert bare[kernel.DRAM] == pytest.approx(moved / 8e3, rel=1e-9)
    assert bare[kernel.CHOICE] == 1


def test_tile_sets_are_choices_of_the_first_by_rows_then_columns():
    assert [tile_set(i).astype(int).tolist() for i in range(7)] == [[[*tile] for tile in tiles] for tiles in TILE_SETS]
    first = TILE_SETS[0]
    assert first == (*sorted((m, n) for m in (16, 32, 64, 128) for n in (64, 128)), (128, 256), (256, 128))
    halves = [(16, 64), (32, 64), (64, 64), (128, 64), (64, 128), (128, 128)]
    assert TILE_SETS[1] == tuple(halves)
    assert TILE_SETS[2] == tuple((m, 128) for m in (16, 32, 64, 128, 256))
    squares = ((64, 64), (64, 128), (128, 128))
    assert TILE_SETS[3:] == ((*squares, (128, 256)), squares, (*squares[1:], (128, 256), (256, 128)), squares[2:])


# --- the textbook's tiles

UNIT = Unit(
    num_threads=1536,
    num_blocks=24,
    num_registers=65536,
    shared_bytes=102400,
    num_memory_cycles=500,
    num_shared_cycles=30,
)


@pytest.mark.parametrize(
    ("tile", "limits"),
    [
        (16, (24, 1536 // 256, 65536 // (256 * 40), 102400 // (2 * 4 * 256 + 1024))),
        (4, (24, 1536 // 32, 65536 // (32 * 40), 102400 // (2 * 4 * 16 + 1024))),
        (5, (24, 1536 // 32, 65536 // (32 * 40), 102400 // (2 * 4 * 25 + 1024))),  # 25 threads are a warp
        (6, (24, 1536 // 64, 65536 // (64 * 40), 102400 // (2 * 4 * 36 + 1024))),  # 36 are two
    ],
)
def test_residency_by_hand(tile, limits):
    assert resident_blocks(tile, UNIT) == min(limits)
    few = replace(UNIT, shared_bytes=20000)
    assert resident_blocks(tile, few) == min(*limits[:3], 20000 // (8 * tile * tile + 1024))


def test_a_round_by_hand():
    """A tile of 16 is 8 warps: 8 (40 + 5 x 16) / 4 = 240 cycles to issue, 8 (2 x 16 + 2) = 272 shared accesses.

    A lone block waits 500 + 30 + 4 x 40 = 690 and is busy 272, more than its chain of 4 x 30 + 64.
    """
    assert _round(16, 1, UNIT) == (690 + 272, "waiting")
    assert _round(16, 3, UNIT) == (962, "waiting")
    assert _round(16, 4, UNIT) == (4 * 272, "shared memory")
    # 4: one warp, 15 to issue, 10 accesses; a chain of 30 + 16 binds
    assert _round(4, 1, UNIT) == (690 + 46, "waiting")
    assert _round(4, 100, UNIT) == (1500, "issue")
    # 6: 2 warps, 35 to issue, 28 accesses; a chain of 2 x 30 + 24
    assert _round(6, 1, UNIT) == (690 + 84, "waiting")


def test_a_tiled_run_by_hand():
    """100 x 200 x 50 in tiles of 16 on an RTX 4070: 7 x 13 blocks, 4 steps, all of them at once on 46 units of 6."""
    device = get_device("rtx-4070")
    run = tiled_run(100, 200, 50, 16, device)
    resident = 6
    cycles = max(541 + 30 + 160 + 272, resident * 272)
    unit_s = 4 * cycles / device.compute_clock_hz
    dram = 4 * (100 * 50 + 50 * 200 + 100 * 200)
    memory_s = dram / (find(device, "gemm", "fp32").constants["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s)
    assert run.num_resident_blocks == resident
    assert run.time_s == pytest.approx(max(unit_s, memory_s), rel=1e-12)
    assert (run.flops, run.dram_bytes) == (2 * 100 * 200 * 50, dram)
    assert run.cache_bytes == 2 * 7 * 13 * 4 * 16 * 64  # 16 words are two sectors of 32 bytes
    assert run.occupancy_frac == 6 * 256 / 1536
    power = energy.power_w(device, "fp32", run.flops / run.time_s, dram / run.time_s)
    assert run.power_w == pytest.approx(float(power), rel=1e-12)
    assert tiled_run(1, 1, 1, 1, device).cache_bytes == 2 * 32


def test_columns_that_outgrow_the_cache_pass_once_for_every_round_of_blocks():
    device = replace(get_device("rtx-4070"), last_level_cache_bytes=1000.0, num_compute_units=2)
    run = tiled_run(1600, 160, 16, 16, device)  # 100 rows of 10 blocks; 2 units hold 12: 83.3 rounds of rows
    assert run.dram_bytes == pytest.approx(4 * (1600 * 16 + 1600 * 160) + 4 * 160 * 16 * 100 / 1.2)
    wide = tiled_run(16, 1600, 16, 16, device)  # less than a row at a time: once for each row of blocks
    assert wide.dram_bytes == pytest.approx(4 * (16 * 16 + 16 * 1600) + 4 * 1600 * 16)
