"""Routed blocks whose loads come from a table of draws: what is read from it, and what a correction sees, by hand."""

import math

import numpy as np
import pytest

from orrery.kernels.moe import _kernel as kernel

TABLE = np.array([[2.0**i * (1 + j) for j in range(8)] for i in range(5)])  # tokens of 1, 1.4, 2, 2.8 and 4
MACHINE = np.array([4.0, 1e6, 1e4, 1e5, 1.0, 0.5])  # units, flops, bandwidth, cache, bytes of activations and weights
CONSTANTS = {
    "overhead_s": 2.0,
    "plain_overhead_s": 3.0,
    "expert_s": 0.25,
    "peak_frac": 0.5,
    "bandwidth_frac": 0.8,
    "row_ratio": 0.7,
    "token_ratio": 0.9,
    "fill_elements": 16.0,
    "cache_ratio": 0.5,
    "uneven_frac": 0.3,
    "sees_all": 0.0,
    "runs_all": 0.0,
    "passes_all": 0.0,
}
HIDDEN, FFN = 256.0, 640.0  # of all; 320 on each of two tensor ranks


def drawn(tokens: float) -> np.ndarray:
    load = np.empty(8)
    kernel._drawn(tokens, TABLE, load)
    return load


def test_loads_are_read_from_the_table_linearly_in_tokens():
    """A row stands for 2^(j/2) tokens: 3 are between 2.83 and 4."""
    for j in range(4):
        assert drawn(2.0 ** (j / 2)) == pytest.approx(TABLE[j])
    share = (3.0 - 2.0**1.5) / (4.0 - 2.0**1.5)
    assert drawn(3.0) == pytest.approx((1 - share) * TABLE[3] + share * TABLE[4])
    share = (1.25 - 1.0) / (2.0**0.5 - 1.0)
    assert drawn(1.25) == pytest.approx((1 - share) * TABLE[0] + share * TABLE[1])


def test_beyond_the_table_loads_grow_with_tokens_and_experts_hit_do_not():
    assert drawn(4.0) == pytest.approx(TABLE[4])
    grown = 2.5 * TABLE[4]
    grown[1] = TABLE[4, 1]
    assert drawn(10.0) == pytest.approx(grown)


def test_a_part_of_a_token_is_one():
    assert drawn(0.5) == pytest.approx(TABLE[0])


def dealt(tokens: float, experts: float, topk: float, ep: float) -> list[float]:
    load = np.empty(8)
    kernel._dealt(tokens, experts, topk, ep, load)
    return load.tolist()


def test_dealing_out_by_hand():
    """10 tokens to 3 experts each, 16 experts on 2 ranks: 15 rows, one each. 50 tokens: 75 rows, 11 get 5."""
    assert dealt(10, 16, 3, 2) == [15, 15, 15, 15, 15, 15, 15, 15]
    assert dealt(50, 16, 3, 2) == [75, 16, 16, 16, 16, 16, 16, 16]
    assert dealt(100, 16, 3, 2) == [150, 16, 6 * 2 + 10 * 2, 16, 16, 16, 16, 16]  # 6 of 10, 10 of 9: two tiles of 8
    assert dealt(90, 16, 3, 2) == [135, 16, 7 * 2 + 9 * 1, 16, 16, 16, 16, 16]  # 7 of 9, 9 of 8
    assert dealt(1, 16, 1, 8) == [1, 1, 1, 1, 1, 1, 1, 1]  # the busiest rank has a row


def block(tokens=3.0, topk=2.0, experts=8.0, ep=2.0, ups=2.0, table=TABLE, **other) -> np.ndarray:
    constants = np.array([(CONSTANTS | other)[name] for name in kernel.CONSTANTS])
    return kernel.scalar(tokens, HIDDEN, FFN, experts, topk, 2.0, ep, ups, table, constants, MACHINE)


def products_s(tiles: float, height: float, ups: float = 2.0) -> float:
    """The up projections of 2 x 320 columns over 256, and the down projection of 256 over 320."""
    total = 0.0
    for columns, depth in ((ups * 320, 256), (256, 320)):
        waves = max(1.0, tiles * math.ceil(columns / 128) / 4)
        total += waves * 2 * height * 128 * (depth + 16) * 4 / (0.5 * 1e6)
    return total


@pytest.mark.parametrize("ups", [1.0, 2.0])
@pytest.mark.parametrize(
    ("topk", "others"),
    [(2.0, {}), (4.0, {"passes_all": 1.0}), *((2.0, {"cache_ratio": ratio}) for ratio in (4.0, 20.0, 90.0))],
)
def test_a_drawn_block_by_hand(ups, topk, others):
    """3 tokens on 4 of 8 experts, FFNs of 640 cut in two; tiles of 16 to 256 rows are tried."""
    out, load = block(ups=ups, topk=topk, **others), drawn(3.0)
    rows, hit = load[0], load[1]
    products = min(products_s(load[2 + i], 8 * 2**i, ups) for i in range(1, 6))
    weights = hit * (ups + 1) * 256 * 320 * 0.5
    kept = min(1.0, max(0.0, 1.5 - weights / (others.get("cache_ratio", 0.5) * 1e5)))
    dram = weights * (1 - 0.5 * kept) / (0.8 * 1e4)
    passed = 3 * topk if others.get("passes_all") else rows
    between = passed * (256 * (2 + 2 * 1) + 320 * (ups * 2 + 1)) / (0.7 * 1e4)
    through = 3 * 256 * (2 * 2 + 1) / (0.9 * 1e4)
    overhead = (2 if ups == 2 else 3) + 0.25 * 4
    both = (products**1.5 + dram**1.5) ** (2 / 3)
    time = overhead + between + through + 1.3 * both
    moved = weights + (min(3, rows) + 3) * 256 * 2
    flops = 2 * rows * (ups + 1) * 256 * 320
    expected = [time, flops / 1e6, moved / 1e4, overhead, flops, moved, hit, rows]
    assert out[:8] == pytest.approx(expected, rel=1e-12)
    log = math.log2
    sizes = [log(3), 8, log(320), 2, topk, 1, ups, log(3 * topk / 4), log(rows), log(hit), log(rows / hit), hit / 4]
    shares = [products / time, dram / time, (between + through) / time, overhead / time]
    assert out[8:] == pytest.approx([*sizes, *shares, 1.0], rel=1e-12)


def test_the_tile_that_all_assignments_would_fill_is_taken_where_a_kernel_sees_all():
    """3 x 2 assignments over 4 experts are 1.5 each: tiles of 8. 100 tokens to 2 are 50: tiles of 64, and so on."""
    even = {"tokens": 100.0, "sees_all": 1.0}
    for tokens, height in ((3.0, 8), (16.0, 8), (17.0, 16), (100.0, 64), (5000.0, 256)):
        out, load = block(**(even | {"tokens": tokens})), drawn(tokens)
        tiles = load[2 + int(math.log2(height)) - 3]
        assert out[8 + 12] * out[0] == pytest.approx(products_s(tiles, height), rel=1e-12)


def test_rows_computed_for_nothing_add_tiles():
    """40 tokens to 2 of 8 experts over 4 ranks: 20 rows, 10 on each of 2; all 20 tokens' other expert is run too."""
    none = np.zeros((0, 8))
    out = block(tokens=40.0, ep=4.0, table=none, runs_all=1.0, sees_all=1.0)
    extra = min(40, 20) * 2 - 20
    assert out[7] == 20
    # 40 x 2 / 2 experts = 40 a tile of 64: 2 tiles and 20 / 64
    assert out[8 + 12] * out[0] == pytest.approx(products_s(2 + extra / 64, 64), rel=1e-12)
    assert out[8 + 16] == 0.0


def test_dealt_evenly_nothing_is_uneven():
    out = block(table=np.zeros((0, 8)))
    products = out[8 + 12] * out[0]
    dram, elementwise, overhead = (out[8 + i] * out[0] for i in (13, 14, 15))
    assert out[0] == pytest.approx(overhead + elementwise + (products**1.5 + dram**1.5) ** (2 / 3), rel=1e-12)


@pytest.mark.parametrize("of_none", [{"tokens": 0.0}, {"topk": 0.0}])
def test_no_assignment_takes_nothing(of_none):
    assert not block(**of_none).any()


def test_more_ranks_than_experts_leave_one_each():
    assert block(ep=64.0)[:8] == pytest.approx(block(ep=8.0)[:8])


RANGES = np.array([[4.0, 64.0], [128.0, 512.0], [256.0, 1024.0], [8.0, 32.0]])


@pytest.mark.parametrize(
    ("sizes", "share"),
    [
        ((8.0, 256.0, 512.0, 16.0), 1.0),
        ((4.0, 128.0, 256.0, 8.0), 1.0),
        ((64.0, 512.0, 1024.0, 32.0), 1.0),
        ((96.0, 256.0, 512.0, 16.0), 1.0 - math.log2(1.5)),
        ((3.0, 256.0, 512.0, 16.0), 1.0 - math.log2(4 / 3)),
        ((8.0, 640.0, 512.0, 16.0), 1.0 - math.log2(1.25)),
        ((8.0, 256.0, 192.0, 16.0), 1.0 - math.log2(4 / 3)),
        ((8.0, 256.0, 512.0, 40.0), 1.0 - math.log2(1.25)),
        ((96.0, 640.0, 512.0, 16.0), (1.0 - math.log2(1.5)) * (1.0 - math.log2(1.25))),
        ((128.0, 256.0, 512.0, 16.0), 0.0),
        ((1.0, 256.0, 512.0, 16.0), 0.0),
    ],
)
@pytest.mark.parametrize(("log", "capped"), [(0.2, 0.2), (-0.2, -0.2), (0.9, 0.5), (-0.9, -0.5)])
def test_a_correction_fades_beyond_what_was_measured(sizes, share, log, capped):
    expected = 3.0 * math.exp(share * capped)
    assert kernel.corrected(3.0, 0.0, log, 0.5, *sizes, RANGES) == pytest.approx(expected, rel=1e-12)


def test_a_correction_stays_over_the_roof_but_raises_nothing_to_it():
    inside = (8.0, 256.0, 512.0, 16.0)
    assert kernel.corrected(3.0, 2.9, -0.5, 0.5, *inside, RANGES) == 2.9
    assert kernel.corrected(3.0, 5.0, -0.5, 0.5, *inside, RANGES) == 3.0
    assert kernel.corrected(0.0, 5.0, 0.5, 0.5, *inside, RANGES) == 0.0
    time = np.array([3.0, 3.0])
    sizes = [np.full(2, size) for size in inside]
    kernel.all_corrected(time, np.array([2.9, 0.0]), np.array([-0.5, 0.25]), 0.5, *sizes, RANGES)
    assert time == pytest.approx([2.9, 3.0 * math.exp(0.25)])


def test_two_things_in_each_others_way():
    assert kernel._overlapped(0.0, 0.0) == 0.0
    assert kernel._overlapped(2.0, 0.0) == kernel._overlapped(0.0, 2.0) == 2.0
    assert kernel._overlapped(1.0, 4.0) == pytest.approx(9.0 ** (2 / 3))
