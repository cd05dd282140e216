"""Matrix instructions: wide ones are bound by the multipliers, narrow and sparse ones by shared memory."""

from dataclasses import replace

import pytest

from orrery.base.errors import OutOfRange
from orrery.kernels.gemm.instruction import MatrixInstruction, num_cycles, peak_frac

WIDE = MatrixInstruction(m=64, n=256, k=16, element_bytes=2.0)
MACS, SHARED = 2048.0, 128.0


def test_a_wide_one_takes_its_multiply_adds():
    assert num_cycles(WIDE, MACS, SHARED) == 128.0
    assert peak_frac(WIDE, MACS, SHARED) == 1.0


def test_a_narrow_one_waits_for_the_left_operand_unless_registers_hold_it():
    narrow = replace(WIDE, n=32)
    assert num_cycles(narrow, MACS, SHARED) == 24.0  # 2048 + 1024 bytes
    assert peak_frac(narrow, MACS, SHARED) == pytest.approx(16 / 24)
    assert peak_frac(replace(narrow, has_left_in_shared=False), MACS, SHARED) == 1.0


def test_a_sparse_one_reads_the_whole_right_operand():
    sparse = replace(WIDE, k=32, is_sparse=True)
    assert num_cycles(sparse, MACS, SHARED) == 144.0
    assert peak_frac(sparse, MACS, SHARED) == pytest.approx(128 / 144)
    assert peak_frac(replace(sparse, has_left_in_shared=False), MACS, SHARED) == 1.0


def test_half_the_bytes_and_twice_the_rate_leave_the_shares_as_they_are():
    eight = MatrixInstruction(m=64, n=32, k=32, element_bytes=1.0)
    assert peak_frac(eight, 2 * MACS, SHARED) == peak_frac(replace(WIDE, n=32), MACS, SHARED)


def test_an_empty_one_is_refused():
    with pytest.raises(OutOfRange, match="above 0"):
        MatrixInstruction(m=64, n=0, k=16, element_bytes=2.0)
