"""Attention kernels on machines of round numbers: tiles and readers counted by hand, then the formula of the page."""

import math

import numpy as np
import pytest

from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention.features import _kernel as features

PEAK, BANDWIDTH, UNITS, EXPS = 1e6, 1e4, 4.0, 2000.0
SHARES = (0.5, 0.6, 0.4, 0.3)  # of the peak at heads of 64, 128, 192 and 256
TILE, STEP, GRANULE, EDGE = 16.0, 32.0, 8.0, 0.25
LAUNCH, MEMORY_FRAC, ENTRY_FRAC, EXTRA_BLOCKS, CACHE_RATIO = 3.0, 0.8, 0.7, 0.01, 0.5


def prefill(query, context, *, heads=6, kv=2, key=128, value=128, window=0, causal=True, packs=0.0, cache=0.0):
    """Every term of two prompts: 2 bytes an element of queries, 1 of keys and values."""
    machine = np.array([PEAK, BANDWIDTH, UNITS, EXPS, cache, 2.0, 1.0])
    shares = [LAUNCH, *SHARES, MEMORY_FRAC, ENTRY_FRAC, EXTRA_BLOCKS, EDGE, CACHE_RATIO, TILE, STEP, packs, GRANULE]
    out = np.empty(kernel.TERMS)
    kernel.prefill_one(2, query, context, heads, kv, key, value, window, causal, machine, np.array(shares), out)
    return out


def computing_s(blocks, longest, columns, tiles, size=128.0, share=0.6):
    """Blocks of both prompts spread over four units, and the longest tile alone."""
    product = 4.0 * 16.0 * 32.0 * size * 4.0 / (1e6 * share)
    softmax = 16.0 * 32.0 * 4.0 / 2000.0
    block = (product**3 + softmax**3) ** (1.0 / 3.0)
    extra = 0.01 * 4.0 * 128.0**3 * 4.0 / 1e6
    ctas = 2.0 * columns * tiles
    fluid = (blocks * 2.0 * columns * block + ctas * extra) / 4.0
    if ctas > 4.0:
        fluid *= 0.5 + 0.5 * math.ceil(ctas / 4.0) / (ctas / 4.0)
    alone = longest * block + extra
    return (fluid**4 + alone**4) ** 0.25, alone, ctas / 4.0


@pytest.mark.parametrize(
    ("sizes", "blocks", "longest", "columns", "tiles"),
    [
        # Three tiles of 16 queries; 60 tokens before them are two blocks of 32. The first two tiles: 2 (2 + 0.5 (1 -
        # gcd(16, 32) / 32)) + (16 / 32) (1 + 2) = 4.5 + 1.5; the last sees ceil(100 / 32) = 4 and holds 8 rows of 16.
        ({"query": 40, "context": 100}, 6.0 + 4.0 * 0.5, 4.0, 6, 3),
        # Every tile sees all four blocks.
        ({"query": 40, "context": 100, "causal": False}, 2.0 * 4.0 + 4.0 * 0.5, 4.0, 6, 3),
        # One tile, of 5 rows that fill a granule of 8: half a tile high, and so is the longest.
        ({"query": 5, "context": 5}, 0.5, 0.5, 6, 1),
        # Exactly two tiles: the first sees 0.25 + 0.5, but a tile takes a block at least; the second sees one.
        ({"query": 32, "context": 32}, 1.0 + 1.0, 1.0, 6, 2),
        # Three query heads a key head stacked: spans of 5 tokens, 8 tiles of 2 heads, gcd(5, 32) = 1, and the last tile
        # of 5 tokens holds 15 rows: two granules of 8, all of it.
        (
            {"query": 40, "context": 100, "packs": 1.0},
            7.0 * (2.0 + 0.5 * 31.0 / 32.0) + 5.0 / 32.0 * 28.0 + 4.0,
            4.0,
            2,
            8,
        ),
        # 20 query heads a key head need two stacks of 10: a token a tile. 3 tiles; a tile takes a block at least.
        ({"query": 3, "context": 3, "heads": 40, "packs": 1.0}, 2.0 + 1.0, 1.0, 4, 3),
        # 17 need two stacks of 9 at most, again a token a tile.
        ({"query": 3, "context": 3, "heads": 34, "packs": 1.0}, 2.0 + 1.0, 1.0, 4, 3),
        # As many key heads as query heads: nothing to stack.
        ({"query": 40, "context": 100, "heads": 6, "kv": 6, "packs": 1.0}, 8.0, 4.0, 6, 3),
        # A window of 20: both full tiles leave floor(41 / 32) = 1 block out, the second half a block more, and each
        # sees a quarter of an edge more; the oldest key of the last tile is 60 + 32 - 20 + 1 = 73, two blocks down.
        ({"query": 40, "context": 100, "window": 20}, 6.0 - 2.0 - 0.5 + 0.5 + 2.25 * 0.5, 2.25, 6, 3),
        # One of a single token leaves out as many: floor(60 / 32) = 1, and 92 keys before the last tile's first.
        ({"query": 40, "context": 100, "window": 1}, 6.0 - 2.0 - 0.5 + 0.5 + 2.25 * 0.5, 2.25, 6, 3),
        # One of 30 leaves out no whole block: 60 - 30 + 1 = 31 keys; the last tile's oldest is 63, one block down.
        ({"query": 40, "context": 100, "window": 30}, 6.0 - 0.5 + 0.5 + 3.25 * 0.5, 3.25, 6, 3),
        # Seven tiles after 10 tokens: 6 (1 + 0.25) + 0.5 x 21 = 18; from tile 2 on a window of 40 leaves keys out:
        # 4 floor(-29 / 32) + 0.5 (5 + 2) 4 / 2 - 4 edges = 2 blocks; the last tile holds 4 rows, half after rounding.
        ({"query": 100, "context": 110, "window": 40}, 18.0 - 2.0 + 2.25 * 0.5, 2.25, 6, 7),
        # Windows that just reach the last tile's oldest key (at 1), just do not (at 0), and never do.
        ({"query": 40, "context": 100, "window": 92}, 6.0 + 4.25 * 0.5, 4.25, 6, 3),
        ({"query": 40, "context": 100, "window": 93}, 8.0, 4.0, 6, 3),
        ({"query": 40, "context": 100, "window": 200}, 8.0, 4.0, 6, 3),
        # Without a causal order a window plays no part.
        ({"query": 40, "context": 100, "window": 20, "causal": False}, 10.0, 4.0, 6, 3),
    ],
)
def test_tiles_of_a_prompt_are_those_counted_by_hand(sizes, blocks, longest, columns, tiles):
    out = prefill(**sizes)
    computing, alone, waves = computing_s(blocks, longest, columns, tiles)
    assert out[6] == pytest.approx(computing, rel=1e-12)
    assert out[10] == pytest.approx(alone, rel=1e-12)
    assert (out[9], out[11]) == (waves, longest)


def test_a_lone_wave_is_not_rounded_up():
    """One head of one prompt half filled: 2 tiles over 4 units are half a wave, and stay half a wave."""
    assert prefill(5, 5, heads=1, kv=1)[6] == pytest.approx(computing_s(0.5, 0.5, 1, 1)[0], rel=1e-12)
    assert prefill(5, 5, heads=2, kv=2)[9] == 1.0
    assert prefill(5, 5, heads=2, kv=2)[6] == pytest.approx(computing_s(0.5, 0.5, 2, 1)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("key", "value", "size", "share"),
    [
        (8, 8, 8.0, 0.5 * 8.0 / 32.0),  # below 32 in proportion
        (16, 16, 16.0, 0.5 * 16.0 / 32.0),
        (48, 48, 48.0, 0.5),
        (64, 0, 64.0, 0.5),  # values as wide as keys where not said
        (96, 96, 96.0, 0.5 * 1.2 ** math.log2(1.5)),
        (128, 128, 128.0, 0.6),
        (192, 128, 160.0, 0.6 * (0.4 / 0.6) ** 0.5),
        (192, 192, 192.0, 0.4),
        (224, 224, 224.0, 0.4 * 0.75**0.5),
        (256, 256, 256.0, 0.3),
        (512, 512, 512.0, 0.3),  # as 256
    ],
)
def test_the_share_of_the_peak_goes_by_powers_between_measured_heads(key, value, size, share):
    out = prefill(40, 100, key=key, value=value)
    assert out[6] == pytest.approx(computing_s(8.0, 4.0, 6, 3, size, share)[0], rel=1e-12)


@pytest.mark.parametrize(
    ("sizes", "pairs", "seen"),
    [
        ({}, 40 * 60 + 820, 100),  # 61, 62 ... 100 keys
        ({"causal": False}, 4000, 100),
        ({"window": 20}, 40 * 20, 59),  # every query sees 20; all of them 20 + 39
        ({"window": 1}, 40, 40),
        ({"window": 92}, (61 + 92) * 32 / 2 + 8 * 92, 100),
        ({"window": 100}, 3220, 100),
        ({"window": 20, "causal": False}, 4000, 100),
    ],
)
@pytest.mark.parametrize(("cache", "key", "value"), [(0.0, 128, 128), (1e9, 128, 128), (6e5, 128, 64)])
def test_bytes_flops_and_passes_of_a_prompt(sizes, pairs, seen, cache, key, value):
    """Two prompts of 40 queries: queries and results of 6 heads in 2 bytes, keys and values of 2 heads in 1."""
    out = prefill(40, 100, cache=cache, key=key, value=value, **sizes)
    moved = 2 * 40 * 6 * (key + value) * 2 + 2 * seen * 2 * (key + value)
    hit = min(1.0, max(0.0, 1.5 - moved / (0.5 * cache))) if cache else 0.0
    moving = moved / (0.8 * 1e4) * (1.0 - 0.7 * hit)
    entering = 2 * 40 * (6 * key + 2 * (key + value)) * 4 / (0.7 * 1e4) * (1.0 - 0.7 * hit)
    flops = 2 * 2 * 6 * (key + value) * pairs
    expected = [3.0 + (out[6] ** 3 + moving**3) ** (1 / 3) + entering, flops / 1e6, moved / 1e4, 3.0, flops, moved]
    assert out[:6] == pytest.approx(expected, rel=1e-12)
    assert out[7:9] == pytest.approx([moving, entering], rel=1e-12)


def test_two_things_of_no_time_take_none_and_one_takes_its_own():
    assert kernel.together(0.0, 0.0, 3.0) == 0.0
    assert kernel.together(0.5, 0.0, 3.0) == kernel.together(0.0, 0.5, 3.0) == 0.5
    assert kernel.together(3.0, 4.0, 2.0) == pytest.approx(5.0, rel=1e-15)


@pytest.mark.parametrize("of_none", [{"heads": 0, "kv": 1}, {"query": 0}])
def test_no_queries_or_heads_take_nothing(of_none):
    assert not prefill(**({"query": 40, "context": 100} | of_none)).any()
    assert not decode(2, **({"context": 100} | of_none)).any()


# --- a decode step

WIDEST, AGAIN, CHUNK, FEED, START = 4.0, 5.0, 64.0, 2.0, 0.5
HEAD_FEED, HEAD_START = 3.0, 0.25


def decode(
    batch,
    context,
    *,
    heads=8,
    kv=2,
    size=64,
    window=0,
    query=1,
    is_cold=True,
    cache=0.0,
    units=16.0,
    lonely=0.0,
    copies=0.0,
    apart=0.0,
    blind=0.0,
):
    """Every term of a step: 2 bytes an element of queries, 1 of keys and values."""
    machine = np.array([PEAK, BANDWIDTH, units, cache, 2.0, 1.0])
    shares = [LAUNCH, MEMORY_FRAC, FEED, START, AGAIN, CHUNK, CACHE_RATIO, HEAD_FEED, HEAD_START, ENTRY_FRAC]
    constants = np.array([*shares, WIDEST, lonely, copies, apart, blind])
    out = np.empty(kernel.TERMS)
    kernel.decode_one(batch, context, heads, kv, size, window, query, is_cold, machine, constants, out)
    return out


def grouped_s(keys, waves, rows=16.0, size=64.0, units=16.0):
    """Readers whose query heads share keys: bytes through the feed, or rows of products at 0.3 of the peak."""
    per_key = max(2.0 * size * units / (2.0 * 1e4), rows * 4.0 * size * units / (0.3 * 1e6))
    return waves * (keys * per_key + 0.5 * 512.0 * units / 1e4)


@pytest.mark.parametrize(
    ("sizes", "keys", "waves", "splits"),
    [
        # 2 sequences of 2 key heads: 4 readers on 16 units, so room for 4 splits; 200 tokens are 3.125 chunks of 64.
        ({"batch": 2, "context": 200}, 64.0, 0.5 * (1.0 + 1.0), 3.125),
        ({"batch": 2, "context": 1000}, 250.0, 1.0, 4.0),  # no more splits than room
        ({"batch": 2, "context": 32}, 32.0, 1.0, 1.0),  # less than a chunk
        ({"batch": 2, "context": 5}, 16.0, 1.0, 1.0),  # 16 keys at least
        ({"batch": 3, "context": 1000}, 500.0, 1.0, 2.0),  # floor(16 / 6) = 2
        ({"batch": 10, "context": 1000}, 1000.0, 0.5 * (1.25 + 2.0), 1.0),  # 20 readers: between 1.25 and 2 waves
        ({"batch": 2, "context": 1000, "window": 100}, 64.0, 1.0, 100.0 / 64.0),
        ({"batch": 2, "context": 1000, "window": 100, "query": 3}, 64.0, 1.0, 102.0 / 64.0),
        ({"batch": 2, "context": 80, "window": 100}, 64.0, 1.0, 80.0 / 64.0),
        ({"batch": 2, "context": 80, "window": 1}, 16.0, 1.0, 1.0),
    ],
)
def test_readers_of_a_step_are_those_counted_by_hand(sizes, keys, waves, splits):
    out = decode(**sizes)
    assert out[6] == pytest.approx(grouped_s(keys, waves), rel=1e-12)
    assert out[9:] == pytest.approx([sizes["batch"] * 2 / 16.0, splits, 0.0], rel=1e-12)


def test_products_bind_where_many_rows_share_a_key():
    """4 query heads a key head times 5 tokens are 20 rows: two tiles of 16."""
    out = decode(2, 1000, query=5, size=256)
    assert 32.0 * 4.0 * 256 / (0.3 * 1e6) > 2.0 * 256 / (2.0 * 1e4)
    assert out[6] == pytest.approx(grouped_s(250.0, 1.0, rows=32.0, size=256.0), rel=1e-12)


@pytest.mark.parametrize(
    ("sizes", "heads", "query"),
    [
        ({"heads": 10, "kv": 2}, 10, 1),  # 5 query heads a key head: more than 4
        ({"heads": 10, "kv": 2, "query": 3}, 10, 3),
        ({"heads": 2, "kv": 2, "lonely": 1.0}, 2, 1),
    ],
)
def test_head_by_head_every_query_head_reads_for_itself(sizes, heads, query):
    out = decode(4, 1000, **sizes)
    columns = 4 * heads
    splits = max(1.0, float(16 // columns))
    waves = max(1.0, columns * splits / 16.0)
    waves = 0.5 * (waves + math.ceil(waves))
    per_key = 2.0 * 64.0 * 16.0 / (3.0 * 1e4) * query
    expected = waves * (1000.0 / splits * per_key + 0.25 * 512.0 * 16.0 / 1e4)
    assert out[6] == pytest.approx(expected, rel=1e-12)
    assert out[9:] == pytest.approx([columns / 16.0, splits, 1.0], rel=1e-12)


@pytest.mark.parametrize("sizes", [{"heads": 8, "kv": 2}, {"heads": 2, "kv": 2}])
def test_groups_up_to_the_widest_share_their_keys(sizes):
    """4 query heads a key head are not too many, and one is alone only to a kernel that minds."""
    assert decode(2, 200, **sizes)[11] == 0.0


@pytest.mark.parametrize(
    ("sizes", "again"),
    [
        ({"context": 200}, 1.0),  # 3.125 splits: a second kernel adds them up
        ({"context": 80}, 0.25),  # 1.25 splits
        ({"context": 32}, 0.0),
        ({"context": 1000, "window": 64}, 0.0),
        ({"context": 1000, "window": 64, "blind": 1.0}, 1.0),  # splits laid out for the whole context
        ({"context": 80, "blind": 1.0}, 0.25),
        ({"context": 32, "copies": 1.0}, 1.0),  # heads that share are copied
        ({"context": 32, "copies": 1.0, "heads": 2}, 0.0),  # none shares
        ({"context": 32, "copies": 1.0, "heads": 4, "kv": 1}, 0.0),  # one key head
        ({"context": 32, "apart": 1.0}, 0.0),
        ({"context": 32, "apart": 1.0, "heads": 10}, 1.0),
        ({"context": 32, "heads": 10}, 0.0),
    ],
)
@pytest.mark.parametrize(("cache", "is_cold"), [(0.0, False), (1e9, True), (1e9, False), (1e5, False)])
def test_bytes_flops_and_passes_of_a_step(sizes, again, cache, is_cold):
    sizes = {"heads": 8, "kv": 2, "window": 0} | sizes
    out = decode(2, cache=cache, is_cold=is_cold, **sizes)
    heads, kv, window = sizes["heads"], sizes["kv"], sizes["window"]
    seen = min(sizes["context"], window) if window else sizes["context"]
    moved = 2 * kv * seen * 2 * 64 * 1 + 2 * 1 * 2 * heads * 64 * 2
    hit = 0.0 if is_cold or not cache else min(1.0, max(0.0, 1.5 - moved / (0.5 * cache)))
    moving = moved / (0.8 * 1e4) * (1.0 - 0.7 * hit)
    before = 2 * (heads + 2 * kv) * 64 * 4 / (0.7 * 1e4)
    flops = 4 * 64 * heads * 2 * seen
    time = 3.0 + (out[6] ** 3 + moving**3) ** (1 / 3) + 5.0 * again + before
    assert out[:6] == pytest.approx([time, flops / 1e6, moved / 1e4, 3.0, flops, moved], rel=1e-12)
    assert out[7:9] == pytest.approx([moving, before], rel=1e-12)


def test_a_step_of_several_tokens_moves_and_multiplies_for_each():
    """3 tokens that end a context of 200 see 198, 199 and 200 keys; a context shorter than them counts as long."""
    out = decode(2, 200, query=3)
    moved = 2 * 2 * 200 * 128 + 2 * 3 * 2 * 8 * 64 * 2
    assert out[5] == moved
    assert out[4] == 4 * 64 * 8 * 2 * (198 + 199 + 200)
    assert out[8] == pytest.approx(2 * 3 * (8 + 4) * 64 * 4 / (0.7 * 1e4), rel=1e-12)
    assert decode(2, 1, query=3)[4] == 4 * 64 * 8 * 2 * (1 + 2 + 3)


# --- what trees see


def test_features_of_a_prompt_are_ratios_and_logs_of_its_terms():
    out = np.array([8.0, 0.0, 0.0, 2.0, 0.0, 4096.0, 3.0, 1.5, 0.5, 2.5, 0.75, 16.0])
    x = np.empty(16)
    features.prefill_row(4, 32, 256, 64, 8, 128, 64, 1024.0, out, x)
    log = math.log2
    expected = [2, 5, 3, 6, 3, 128, 0.25, log(2.5), 3 / 2.5, 4, 0.25, 0.0625, 1, 0.25, 2, 2]
    assert x.tolist() == pytest.approx(expected, rel=1e-15)


def test_features_of_a_step_are_ratios_and_logs_of_its_terms():
    out = np.array([8.0, 0.0, 0.0, 2.0, 0.0, 4096.0, 3.0, 1.5, 0.5, 2.5, 7.0, 1.0])
    x = np.empty(16)
    features.decode_row(4, 256, 64, 8, 128, 30, 3, 1024.0, out, x)
    log = math.log2
    expected = [2, 5, 3, 6, 3, 128, 1, log(2.5), 3 / 2.5, 7, 0.25, 0.0625, 1, 1, 2, 2]  # 30 + 3 - 1 = 32 seen
    assert x.tolist() == pytest.approx(expected, rel=1e-15)
    features.decode_row(4, 256, 64, 8, 128, 0, 3, 1024.0, out, x)
    assert x[[1, 2, 6]].tolist() == [8, 0, 0]


def test_features_of_a_kernel_without_window_and_of_part_of_a_wave():
    out = np.array([8.0, 0.0, 0.0, 2.0, 0.0, 4096.0, 3.0, 1.5, 0.5, 0.25, 0.75, 16.0])
    x = np.empty(16)
    features.prefill_row(4, 32, 256, 64, 8, 128, 0, 1024.0, out, x)
    assert x[[6, 7, 8]].tolist() == [2, -2, 4]
    features.prefill_row(4, 32, 256, 64, 8, 128, 1000, 1024.0, out, x)
    assert x[6] == 1.0
    features.decode_row(4, 256, 64, 8, 128, 0, 3, 1024.0, out, x)
    assert x[[7, 8]].tolist() == [-2, 1]
    out[9] = 1.0
    features.prefill_row(4, 32, 256, 64, 8, 128, 0, 1024.0, out, x)
    assert x[[7, 8]].tolist() == [0, 1]


def test_features_of_nothing_stay_finite():
    """Every logarithm has its least argument: counts 1, a time 1e-30, waves 1e-6 and 1e-3, the longest tile 1e-3."""
    x, log = np.empty(16), math.log2
    features.prefill_row(0, 0, 0, 0, 0, 128, 0, 0.0, np.zeros(12), x)
    expected = [0, 0, 0, 0, 0, 128, 2, log(1e-6), 1e3, log(1e-3), 0, 0, 0, 0, 0, 0]
    assert x.tolist() == pytest.approx(expected, rel=1e-15)
    features.decode_row(0, 0, 0, 0, 128, 0, 1, 0.0, np.zeros(12), x)
    assert x.tolist() == pytest.approx([0, 0, 0, 0, 0, 128, 0, log(1e-6), 1, 0, 0, 0, 0, 0, 0, 0], rel=1e-15)


def test_features_of_an_array_are_those_of_its_numbers():
    batch = np.array([1, 2])
    machine = np.array([PEAK, BANDWIDTH, UNITS, EXPS, 1e5, 2.0, 1.0])
    constants = np.array([LAUNCH, *SHARES, 0.8, 0.7, 0.01, EDGE, 0.5, TILE, STEP, 0.0, GRANULE])
    many = [np.full(2, size) for size in (40, 100, 6, 2, 128, 128, 20)]
    answer = np.empty((6, 2))
    x = features.prefill_features(batch, *many, True, machine, constants, answer)
    assert x.shape == (2, 16)
    for i, b in enumerate(batch.tolist()):
        out = np.empty(kernel.TERMS)
        one = features.prefill_features_scalar(b, 40, 100, 6, 2, 128, 128, 20, True, machine, constants, out)
        assert one.shape == (1, 16)
        assert x[i].tolist() == one[0].tolist()
        assert answer[:, i].tolist() == out[:6].tolist()
        assert x[i, 14] == pytest.approx(math.log2(out[5] / 1e5), rel=1e-12)
    step_machine = np.array([PEAK, BANDWIDTH, 16.0, 1e5, 2.0, 1.0])
    step = np.array([3.0, 0.8, 2.0, 0.5, 5.0, 64.0, 0.5, 3.0, 0.25, 0.7, 4.0, 0.0, 0.0, 0.0, 0.0])
    many = [np.full(2, size) for size in (200, 8, 2, 64, 0, 1)]
    x = features.decode_features(batch, *many, False, step_machine, step, answer)
    assert x.shape == (2, 16)
    for i, b in enumerate(batch.tolist()):
        out = np.empty(kernel.TERMS)
        one = features.decode_features_scalar(b, 200, 8, 2, 64, 0, 1, False, step_machine, step, out)
        assert one.shape == (1, 16)
        assert x[i].tolist() == one[0].tolist()
        assert answer[:, i].tolist() == out[:6].tolist()
        assert x[i, 14] == pytest.approx(math.log2(out[5] / 1e5), rel=1e-12)
