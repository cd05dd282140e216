"""Gathered rows: short ones waste lines, long ones do not."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.kernels.gather import useful_frac


def test_short_vectors_waste_the_rest_of_a_line():
    assert useful_frac(16.0, 256.0) == pytest.approx(1 / 16)
    assert useful_frac(16.0, 32.0) == pytest.approx(0.5)
    assert useful_frac(2048.0, 256.0) == useful_frac(2048.0, 32.0) == 1.0


def test_a_vector_just_over_a_line_moves_two():
    assert useful_frac(257.0, 256.0) == pytest.approx(257 / 512)


def test_nothing_is_no_vector():
    with pytest.raises(OutOfRange, match="above 0"):
        useful_frac(0.0, 32.0)
