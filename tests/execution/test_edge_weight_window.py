"""Weights in a moving window: by hand, at both limits, and never worse for a longer window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange
from orrery.execution.edge.weight_window import WeightBlock, first_and_later_s, pass_ends_s, peak_bytes


def block(load_s, busy_s, held=0.0, copied=0.0):
    return WeightBlock(load_s=load_s, busy_s=busy_s, held_bytes=held, copied_bytes=copied)


def test_on_demand_nothing_overlaps():
    blocks = (block(2.0, 1.0), block(3.0, 0.5))
    assert pass_ends_s(blocks, 1, 2) == (6.5, 13.0)


def test_a_window_of_two_by_hand():
    blocks = (block(2.0, 1.0), block(2.0, 3.0), block(1.0, 1.0))
    # reads end at 2, 4, 5 (the first is released at 3), 9 (the second at 7), 11; works at 3, 7, 8, 10, 14
    assert pass_ends_s(blocks, 2, 2) == (8.0, 15.0)


def test_a_window_of_all_blocks_reads_them_once():
    blocks = (block(2.0, 1.0), block(2.0, 3.0))
    # reads end at 2 and 4, works at 3 and 7; from then on 4 s a pass
    assert pass_ends_s(blocks, 2, 3) == pass_ends_s(blocks, 5, 3) == (7.0, 11.0, 15.0)


def test_in_its_stride_the_slower_of_drive_and_work_decides():
    slow_drive, slow_work = (tuple(block(a, b) for _ in range(10)) for a, b in ((2.0, 1.0), (1.0, 2.0)))
    assert first_and_later_s(slow_drive, 3)[1] == pytest.approx(20.0)
    assert first_and_later_s(slow_work, 3) == pytest.approx((21.0, 20.0))


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=2, max_size=8), st.integers(1, 5))
def test_a_longer_window_is_never_slower(times, window):
    blocks = tuple(block(load, busy) for load, busy in times)
    shorter, longer = (pass_ends_s(blocks, w, 3)[-1] for w in (window, window + 1))
    assert longer <= shorter + 1e-9
    reads = 1 if window + 1 >= len(blocks) else 3  # passes that the drive has to read
    assert longer >= max(reads * sum(load for load, _ in times), 3 * sum(busy for _, busy in times)) - 1e-9


def test_the_fullest_window_counts_the_copy_of_the_block_that_is_read():
    blocks = (block(0, 0, 1, 0.5), block(0, 0, 4, 2), block(0, 0, 2, 1))
    assert peak_bytes(blocks, 1) == 6.0
    assert peak_bytes(blocks, 2) == 7.0
    assert peak_bytes(blocks, 9) == 8.0


def test_a_window_of_nothing_is_refused():
    with pytest.raises(OutOfRange, match="1 or more"):
        pass_ends_s((block(1.0, 1.0),), 0, 1)
