"""The textbook tiled product: occupancy by CUDA's rules, no bank conflicts, and 16 as the tile to take on Ada."""

from dataclasses import replace

import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.kernels import energy
from orrery.kernels.gemm.naive_tiles import UNITS, resident_blocks, tiled_run

ADA, HOPPER = get_device("rtx-4070"), get_device("h100-sxm")
TILES = (1, 4, 8, 16, 32)


@pytest.mark.parametrize(("generation", "expected"), [("ada", (24, 24, 24, 6, 1)), ("hopper", (32, 32, 25, 6, 1))])
def test_resident_blocks_are_those_of_the_occupancy_rules(generation, expected):
    """Ada: 24 blocks, then 1536 / 256 threads, then one of 1024; Hopper: 65,536 registers at 40 a thread bind first."""
    assert tuple(resident_blocks(tile, UNITS[generation]) for tile in TILES) == expected


@pytest.mark.parametrize("tile", range(1, 33))
def test_no_shared_access_collides_in_a_bank(tile):
    threads = [(t // tile, t % tile) for t in range(tile * tile)]
    for first in range(0, len(threads), 32):
        warp = threads[first : first + 32]
        for term in range(tile):
            for words in ({row * tile + term for row, _ in warp}, {term * tile + column for _, column in warp}):
                assert len({word % 32 for word in words}) == len(words)
        stored = {row * tile + column for row, column in warp}
        assert len({word % 32 for word in stored}) == len(warp)


@pytest.mark.parametrize("shape", [(8192, 8192, 8192), (16384, 8192, 1024), (16384, 16384, 16384)])
def test_sixteen_is_the_best_tile_on_ada_and_small_ones_wait(shape):
    runs = {tile: tiled_run(*shape, tile, ADA) for tile in TILES}
    assert min(runs, key=lambda tile: runs[tile].time_s) == 16
    assert [runs[tile].bound_by for tile in (1, 4, 32)] == ["waiting"] * 3
    assert runs[16].bound_by == "shared memory"
    assert runs[1].time_s > 100 * runs[16].time_s
    assert 1.1 < runs[8].time_s / runs[16].time_s < 3.3
    assert 1.0 < runs[32].time_s / runs[16].time_s < 1.5


def test_published_times_are_met_where_waiting_is_all_there_is():
    """One thread a block, 16384 cubed: 1222 s on an RTX 4070 [liu-2024-gemm-ada]; nothing here was fitted to it."""
    assert tiled_run(16384, 16384, 16384, 1, ADA).time_s == pytest.approx(1222.268, rel=0.1)


@pytest.mark.parametrize("device", [ADA, HOPPER], ids=lambda d: d.name)
def test_no_tile_beats_the_vector_units_the_memory_or_the_shared_loads(device):
    m, n, k = 4096, 4096, 4096
    for tile in range(1, 33):
        run = tiled_run(m, n, k, tile, device)
        assert run.time_s >= run.flops / device.vector_flops_per_s
        assert run.time_s >= 4 * (m * k + k * n + m * n) / device.memory_bandwidth_bytes_per_s
        loads = 2 * m * n * k / (32 * device.num_compute_units * device.compute_clock_hz)
        assert run.time_s >= loads
        assert 0 < run.occupancy_frac <= 1
        assert device.idle_power_w < run.power_w <= device.power_limit_w


def test_traffic_falls_as_tiles_grow():
    cache = {tile: tiled_run(8192, 8192, 8192, tile, ADA).cache_bytes for tile in (8, 16, 32)}
    assert cache[8] == 2 * cache[16] == 4 * cache[32]
    assert cache[32] == pytest.approx(2 * 4 * 8192**3 / 32)
    dram = [tiled_run(16384, 16384, 16384, tile, ADA).dram_bytes for tile in (4, 8, 16)]
    assert dram == sorted(dram, reverse=True)
    small = tiled_run(1024, 1024, 1024, 8, ADA)
    assert small.dram_bytes == 3 * 4 * 1024**2, "what fits the last cache passes the memory once"


def test_a_quicker_clock_helps_only_what_the_units_bind():
    quick = replace(ADA, compute_clock_hz=2 * ADA.compute_clock_hz)
    bound = tiled_run(8192, 8192, 8192, 8, ADA)
    assert bound.bound_by == "memory"
    assert tiled_run(8192, 8192, 8192, 8, quick).time_s == bound.time_s
    assert tiled_run(8192, 8192, 8192, 1, quick).time_s == tiled_run(8192, 8192, 8192, 1, ADA).time_s / 2


def test_sizes_that_no_tile_divides_are_rounded_up():
    whole, ragged, more = (tiled_run(size, size, size, 16, ADA) for size in (4096, 4081, 4097))
    assert ragged.time_s == whole.time_s < more.time_s


@pytest.mark.parametrize(("device", "tile"), [("a100-sxm-80gb", 16), ("rtx-4070", 33), ("rtx-4070", 0)])
def test_what_is_not_known_is_refused_in_words(device, tile):
    with pytest.raises(OutOfRange, match=r"known are ada|write a tile of 1 to 32"):
        tiled_run(1024, 1024, 1024, tile, get_device(device))


def test_polled_power_lies_between_waking_and_working():
    awake = float(energy.power_w(ADA, "fp32", 0.0, 0.0))
    assert energy.polled_w(ADA, "fp32", 150.0, 0.0, 1.0) == awake
    assert energy.polled_w(ADA, "fp32", 150.0, 1.0, 0.0) == 150.0
    slow, quick = (float(energy.polled_w(ADA, "fp32", 150.0, busy_s, 1.0)) for busy_s in (2.0, 1.0))
    assert awake < quick < slow < 150.0
    assert quick == pytest.approx((150.0 + awake) / 2)


@pytest.mark.parametrize(("sizes", "tile"), [((0, 8, 8), 8), ((8, 0, 8), 8), ((8, 8, 0), 8), ((8, 8, 8), 0)])
def test_nothing_is_no_product(sizes, tile):
    with pytest.raises(OutOfRange, match="sizes above 0"):
        tiled_run(*sizes, tile, get_device("h100-sxm"))
