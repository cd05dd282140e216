"""Latent attention and its absorbing products on machines of round numbers, by hand."""

import math

import numpy as np
import pytest

from orrery.kernels.latent import _kernel as kernel

PEAK, BANDWIDTH, UNITS = 1e6, 1e4, 16.0
LAUNCH, MEMORY_FRAC, FEED, PRODUCT_FRAC, START, AGAIN, CHUNK = 3.0, 0.8, 2.0, 0.6, 0.5, 5.0, 64.0
CACHE_RATIO, ENTRY_FRAC = 0.5, 0.7


def decode(batch, context, *, heads=8, size=96, value=64, query=1, is_cold=True, cache=0.0, row_tile=128.0):
    """Every term of a step over latents of 96 elements, a byte each; queries and results take 2 bytes an element."""
    machine = np.array([PEAK, BANDWIDTH, UNITS, cache, 2.0, 1.0])
    constants = [LAUNCH, MEMORY_FRAC, FEED, PRODUCT_FRAC, START, AGAIN, CHUNK, CACHE_RATIO, ENTRY_FRAC, row_tile]
    out = np.empty(kernel.TERMS)
    kernel.decode_one(batch, context, heads, size, value, query, is_cold, machine, np.array(constants), out)
    return out


def reading_s(keys, waves, padded):
    """Waves of readers that take keys one by one, each through the feed or through products of padded rows."""
    product = 2.0 * padded * (96 + 64) * 16.0 / (0.6 * 1e6)
    per_key = max(96 * 16.0 / (2.0 * 1e4), product)
    return waves * (keys * per_key + 0.5 * 1152.0 * 16.0 / 1e4)


@pytest.mark.parametrize(
    ("sizes", "keys", "waves", "padded", "columns", "splits"),
    [
        # 8 rows are one block, padded to 16; 2 readers on 16 units; 200 tokens are 3.125 chunks of 64.
        ({"batch": 2, "context": 200}, 64.0, 1.0, 16.0, 2, 3.125),
        ({"batch": 2, "context": 1000}, 125.0, 1.0, 16.0, 2, 8.0),  # 16 / 2 splits at most
        ({"batch": 2, "context": 10}, 16.0, 1.0, 16.0, 2, 1.0),  # 16 keys at least
        ({"batch": 20, "context": 100}, 100.0, 0.5 * (1.25 + 2.0), 16.0, 20, 1.0),
        ({"batch": 2, "context": 200, "query": 3}, 64.0, 1.0, 32.0, 2, 3.125),  # 24 rows
        ({"batch": 2, "context": 200, "heads": 128}, 64.0, 1.0, 128.0, 2, 3.125),  # one block, full
        ({"batch": 2, "context": 200, "heads": 129}, 64.0, 1.0, 128.0, 4, 3.125),  # two blocks of 128
        ({"batch": 2, "context": 200, "row_tile": 64.0}, 64.0, 1.0, 64.0, 2, 3.125),  # small tiles are not cut
        ({"batch": 2, "context": 200, "row_tile": 80.0}, 64.0, 1.0, 16.0, 2, 3.125),
    ],
)
def test_readers_of_a_step_are_those_counted_by_hand(sizes, keys, waves, padded, columns, splits):
    out = decode(**sizes)
    assert out[6] == pytest.approx(reading_s(keys, waves, padded), rel=1e-12)
    assert out[9:] == pytest.approx([columns / 16.0, splits], rel=1e-12)


def test_the_feed_binds_where_rows_are_few():
    """A peak a thousand times as high: 96 bytes a key through twice the bandwidth, a sixteenth of it a unit."""
    machine = np.array([1e9, BANDWIDTH, UNITS, 0.0, 2.0, 1.0])
    constants = np.array([3.0, 0.8, 2.0, 0.6, 0.5, 5.0, 64.0, 0.5, 0.7, 128.0])
    out = np.empty(kernel.TERMS)
    kernel.decode_one(2, 200, 8, 96, 64, 1, True, machine, constants, out)
    assert out[6] == pytest.approx(64.0 * 96 * 16.0 / 2e4 + 0.5 * 1152.0 * 16.0 / 1e4, rel=1e-12)


@pytest.mark.parametrize(("cache", "is_cold"), [(0.0, False), (1e9, True), (1e9, False), (8e4, False)])
@pytest.mark.parametrize(("context", "again"), [(200, 1.0), (80, 0.25), (30, 0.0)])
def test_bytes_flops_and_passes_of_a_step(context, again, cache, is_cold):
    out = decode(2, context, is_cold=is_cold, cache=cache)
    moved = 2 * context * 96 * 1 + 2 * 8 * (96 + 64) * 2
    hit = 0.0 if is_cold or not cache else min(1.0, max(0.0, 1.5 - moved / (0.5 * cache)))
    moving = moved / (0.8 * 1e4) * (1.0 - 0.7 * hit)
    entering = 2 * 8 * (96 + 64) * 4 / (0.7 * 1e4)
    flops = 2 * (96 + 64) * 8 * 2 * context
    time = 3.0 + (out[6] ** 3 + moving**3) ** (1 / 3) + 5.0 * again + entering
    assert out[:6] == pytest.approx([time, flops / 1e6, moved / 1e4, 3.0, flops, moved], rel=1e-12)
    assert out[7:9] == pytest.approx([moving, entering], rel=1e-12)


def test_a_step_of_several_tokens_sees_a_triangle():
    """3 tokens that end a context of 200 see 198, 199 and 200 latents; a context shorter than them counts as long."""
    assert decode(2, 200, query=3)[4] == 2 * (96 + 64) * 8 * 2 * (198 + 199 + 200)
    assert decode(2, 2, query=3)[4] == 2 * (96 + 64) * 8 * 2 * (1 + 2 + 3)
    assert decode(2, 200, query=3)[5] == 2 * 200 * 96 + 2 * 24 * (96 + 64) * 2


@pytest.mark.parametrize("of_none", [{"batch": 0}, {"heads": 0}, {"query": 0}])
def test_a_step_of_nothing_takes_nothing(of_none):
    assert not decode(**({"batch": 2, "context": 200} | of_none)).any()
    assert decode(1, 200, heads=1, query=1)[0] > 3.0


def test_features_of_a_step_are_ratios_and_logs_of_its_terms():
    out = np.array([8.0, 0.0, 0.0, 2.0, 0.0, 4096.0, 3.0, 1.5, 0.5, 2.5, 7.0])
    x, log = np.empty(12), math.log2
    kernel.decode_row(4, 256, 64, 8, 1024.0, out, x)
    assert x.tolist() == pytest.approx([2, 8, 6, 3, log(2.5), 3 / 2.5, 7, 0.25, 0.0625, 1, 2, 2], rel=1e-15)
    out[9] = 1.0
    kernel.decode_row(4, 256, 64, 8, 1024.0, out, x)
    assert x[[4, 5]].tolist() == [0, 1]
    out[9] = 0.25
    kernel.decode_row(4, 256, 64, 8, 1024.0, out, x)
    assert x[[4, 5]].tolist() == [-2, 1]


def test_features_of_nothing_stay_finite():
    x = np.empty(12)
    kernel.decode_row(0, 0, 0, 0, 0.0, np.zeros(kernel.TERMS), x)
    assert x.tolist() == pytest.approx([0, 0, 0, 0, math.log2(1e-6), 1, 0, 0, 0, 0, 0, 0], rel=1e-15)


def test_many_steps_are_their_single_ones_with_features():
    machine = np.array([PEAK, BANDWIDTH, UNITS, 8e4, 2.0, 1.0])
    constants = np.array([3.0, 0.8, 2.0, 0.6, 0.5, 5.0, 64.0, 0.5, 0.7, 128.0])
    batch = np.array([1, 2])
    many = [batch, *(np.full(2, size) for size in (200, 8, 96, 64, 1))]
    answer, out = np.empty((6, 2)), np.empty(kernel.TERMS)
    x = kernel.decode_features(*many, False, machine, constants, answer)
    assert x.shape == (2, 12)
    assert kernel.decode(*many, False, machine, constants).tolist() == answer.tolist()
    for i, b in enumerate(batch.tolist()):
        one = kernel.decode_features_scalar(b, 200, 8, 96, 64, 1, False, machine, constants, out)
        assert one.shape == (1, 12)
        assert x[i].tolist() == one[0].tolist()
        assert answer[:, i].tolist() == out[:6].tolist()
        assert kernel.decode_scalar(b, 200, 8, 96, 64, 1, False, machine, constants)[:6].tolist() == out[:6].tolist()
        assert x[i, 10] == pytest.approx(math.log2(out[5] / 8e4), rel=1e-12)


# --- the products that absorb a projection


def absorb(m, n, k, heads, *, is_cold=True, cache=0.0, enters=0.0):
    """The six rows of products in 1 byte an element, results in 2."""
    machine = np.array([PEAK, BANDWIDTH, UNITS, cache, 1.0])
    constants = np.array([LAUNCH, 0.6, 0.8, 10.0, 0.5, 0.7, enters])
    return kernel.absorb_scalar(m, n, k, heads, is_cold, machine, constants)


@pytest.mark.parametrize(
    ("m", "n", "heads", "tile", "tiles", "rows"),
    [
        (256, 512, 4, 128.0, 2 * 4 * 4, 128.0),  # 32 tiles on 16 units
        (256, 256, 4, 128.0, 2 * 2 * 4, 128.0),  # 16 are enough
        (256, 128, 4, 64.0, 4 * 2 * 4, 64.0),  # 8 would leave units empty
        (64, 64, 1, 32.0, 4.0, 32.0),  # never below 32
        (20, 512, 1, 32.0, 16.0, 32.0),  # 20 rows are padded to 32
        (10, 512, 1, 32.0, 16.0, 16.0),  # 10 to 16
        (10, 300, 1, 32.0, 10.0, 16.0),  # ten tiles, the last one cut
        (40, 300, 1, 32.0, 20.0, 32.0),  # two by ten: ten tiles of 64 would be too few
        (300, 512, 4, 128.0, 3 * 4 * 4, 128.0),  # the last tile is cut
        (256, 700, 3, 128.0, 2 * 6 * 3, 128.0),  # 36 tiles: 2.25 waves count as halfway to 3
    ],
)
@pytest.mark.parametrize(
    ("cache", "is_cold", "enters"),
    [(0.0, False, 0.0), (1e9, True, 1.0), (1e9, False, 2.0), (4e5, False, 1.0), (4e5, False, 0.0)],
)
def test_tiles_are_halved_until_units_are_busy(m, n, heads, tile, tiles, rows, cache, is_cold, enters):
    k = 64
    out = absorb(m, n, k, heads, is_cold=is_cold, cache=cache, enters=enters)
    waves = max(1.0, tiles / 16.0)
    waves = 0.5 * (waves + math.ceil(waves))
    computing = waves * 2.0 * rows * tile * (k + 10.0) * 16.0 / (0.6 * 1e6)
    moved = heads * (m * k + k * n + m * n * 2)
    hit = 0.0 if is_cold or not cache else min(1.0, max(0.0, 1.5 - moved / (0.5 * cache)))
    moving = moved / (0.8 * 1e4) * (1.0 - 0.7 * hit)
    converted = heads * {0.0: 0, 1.0: m * k, 2.0: k * n}[enters] * 3 / (0.7 * 1e4)
    time = 3.0 + (computing**3 + moving**3) ** (1 / 3) + converted
    flops = 2 * heads * m * n * k
    assert out.tolist() == pytest.approx([time, flops / 1e6, moved / 1e4, 3.0, flops, moved], rel=1e-12)


def test_products_of_nothing_take_nothing():
    assert not absorb(0, 64, 64, 1).any()
    assert not absorb(64, 64, 64, 0).any()
    assert absorb(1, 64, 64, 1)[0] > 3.0
