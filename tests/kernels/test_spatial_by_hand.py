"""Attention on an array of 4 x 4 multipliers, every figure by hand."""

from dataclasses import replace

import pytest

from orrery.kernels.spatial import attention as spatial

WORK = spatial.Attention(num_heads=3, num_rows=16, num_head_features=8)  # 768 scores


ARRAY = spatial.SpatialArray(num_side=4, clock_hz=10.0, buffer_bytes=256.0, memory_bandwidth_bytes_per_s=1e9)


OPERAND = 2 * 3 * 16 * 8  # bytes of the queries of all heads


PRODUCTS_S = 2 * 768 * 8 / 16 / 10


def test_scores_are_squares_of_rows():
    assert WORK.num_scores == 768


@pytest.mark.parametrize(("run", "steps"), [(spatial.three_pass, 4), (spatial.two_pass, 4)])
def test_lanes_bind_where_features_are_few(run, steps):
    """768 scores: 4 steps on 4 lanes at 10 Hz take as long as products of 8 features on 16 multipliers."""
    found = run(replace(WORK, num_head_features=6), ARRAY)
    assert found.lanes_s == found.time_s == pytest.approx(steps * 768 / 4 / 10)
    assert found.busy_frac == pytest.approx(6 / 8)
    products_bind = run(replace(WORK, num_head_features=16), ARRAY)
    assert products_bind.time_s == pytest.approx(2 * 768 * 16 / 16 / 10)
    assert products_bind.busy_frac == 1.0


@pytest.mark.parametrize(("run", "crossings"), [(spatial.three_pass, 4), (spatial.two_pass, 2)])
@pytest.mark.parametrize(
    ("buffer_bytes", "together", "spills"),
    [
        (127.0, 4, True),  # 4 rows of 16 scores in 2 bytes are 128: one byte short
        (128.0, 4, False),
        (256.0, 8, False),
        (383.0, 8, False),
        (384.0, 12, False),
        (4096.0, 128, False),  # more than there are rows: keys and values pass once
    ],
)
def test_rows_wait_in_the_buffer_or_spill(run, crossings, buffer_bytes, together, spills):
    found = run(WORK, replace(ARRAY, buffer_bytes=buffer_bytes))
    spilled = crossings * 2 * 768 if spills else 0
    assert found.row_buffer_bytes == 128
    assert found.spilled_bytes == spilled
    assert found.memory_bytes == pytest.approx(OPERAND * (2 + 2 * max(16 / together, 1)) + spilled)


@pytest.mark.parametrize("run", [spatial.three_pass, spatial.two_pass, spatial.one_pass, spatial.one_pass_on_lanes])
def test_a_slow_memory_binds(run):
    slow = replace(ARRAY, memory_bandwidth_bytes_per_s=1.0)
    assert run(WORK, slow).time_s == run(WORK, slow).memory_bytes
    assert run(WORK, slow).busy_frac == pytest.approx(
        run(WORK, ARRAY).busy_frac * run(WORK, ARRAY).time_s / run(WORK, slow).time_s
    )


def test_one_pass_by_hand():
    """4 blocks a row: the lanes bring up to date in 1 + 8 + 8/4 = 11 cycles beside the product's 9; then 1, 8, 8.

    Beside two blocks of keys and values, 4 x 2 x 4 x 8 = 256 bytes, a row keeps 2 (2 x 8 + 2) = 36 bytes: with 900
    the buffer has room for floor(644 / 144) = 4 times 4 rows, all sixteen.
    """
    roomy = replace(ARRAY, buffer_bytes=900.0)
    found = spatial.one_pass(WORK, roomy)
    assert found.time_s == pytest.approx(768 / 16 * (11 + 1 + 8 + 8) / 10)
    assert found.busy_frac == pytest.approx((9 + 8 + 8) / 28)
    assert found.lanes_s == pytest.approx(768 / 16 * (11 + 8 + 8) / 10)
    assert found.row_buffer_bytes == 2 * 16
    assert found.memory_bytes == OPERAND * (2 + 2)
    assert found.spilled_bytes == 0
    less = spatial.one_pass(WORK, replace(ARRAY, buffer_bytes=256.0 + 2 * 144.0))
    assert less.memory_bytes == OPERAND * (2 + 2 * 16 / 8)
    least = spatial.one_pass(WORK, replace(ARRAY, buffer_bytes=10.0))
    assert least.memory_bytes == OPERAND * (2 + 2 * 16 / 4)


def test_one_pass_over_less_than_a_block_counts_a_block():
    """2 rows on 4: one block, so the division's 8 cycles come on top of 9: 17 beside the product's 9."""
    found = spatial.one_pass(replace(WORK, num_rows=2), replace(ARRAY, buffer_bytes=900.0))
    assert found.time_s == pytest.approx(12 / 16 * (17 + 1 + 8 + 8) / 10)


def test_one_pass_on_lanes_by_hand():
    """3 steps a score on 4 lanes, beside the products, and the memory traffic of one pass."""
    found = spatial.one_pass_on_lanes(replace(WORK, num_head_features=4), ARRAY)
    assert found.lanes_s == found.time_s == pytest.approx(3 * 768 / 4 / 10)
    assert found.busy_frac == pytest.approx(2 * 4 / (3 * 4))
    wide = spatial.one_pass_on_lanes(WORK, ARRAY)
    assert wide.time_s == pytest.approx(PRODUCTS_S)
    alone = spatial.one_pass(WORK, ARRAY)
    assert (wide.memory_bytes, wide.row_buffer_bytes) == (alone.memory_bytes, alone.row_buffer_bytes)
