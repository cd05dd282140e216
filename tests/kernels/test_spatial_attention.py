"""Attention on an array: cycles of a block by hand, the published model's times, and what spills."""

from dataclasses import replace

import pytest

from orrery.kernels.spatial.attention import (
    Attention,
    SpatialArray,
    one_pass,
    three_pass,
)

WORK = Attention(num_heads=64 * 12, num_rows=4096, num_head_features=64)


LARGE = SpatialArray(
    num_side=256, clock_hz=940e6, buffer_bytes=32 * 2.0**20, memory_bandwidth_bytes_per_s=400 * 2.0**30
)


SMALL = replace(LARGE, buffer_bytes=16 * 2.0**20)


def test_a_block_takes_what_its_steps_take():
    """max(64 + 1, 1 + 64 + 64/16) + 1 + max(6 + 2, 6 + 2) + 64 = 142 cycles, 137 of them on the square array."""
    run = one_pass(WORK, SMALL)
    assert run.time_s == pytest.approx(142 * WORK.num_scores / 256**2 / 940e6)
    assert run.busy_frac == pytest.approx(137 / 142)


@pytest.mark.parametrize(
    ("rows", "before_s", "after_s"),
    [(1024, 0.013386076595744681, 0.002013140425531915), (65536, 54.829369736170214, 7.402500357446808)],
)
def test_times_are_those_of_the_published_model(rows, before_s, after_s):
    work = replace(WORK, num_rows=rows)
    assert three_pass(work, LARGE).time_s == pytest.approx(before_s)
    assert one_pass(work, SMALL).time_s == pytest.approx(after_s)


def test_rows_that_the_buffer_cannot_hold_spill_and_one_pass_does_not():
    long = replace(WORK, num_rows=2**18)
    before, after = three_pass(long, LARGE), one_pass(long, SMALL)
    assert before.row_buffer_bytes > LARGE.buffer_bytes
    assert before.memory_bytes > 8.0 * long.num_scores
    assert before.time_s == pytest.approx(before.memory_bytes / LARGE.memory_bandwidth_bytes_per_s)
    assert after.row_buffer_bytes == one_pass(WORK, SMALL).row_buffer_bytes == 2 * 256**2
    assert after.memory_bytes < 0.01 * before.memory_bytes
