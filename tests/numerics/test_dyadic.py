"""Dyadic scales, and sums in steps of them as exact arithmetic has it."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.arithmetic.dyadic import (
    Dyadic,
    nearest_dyadic,
    requantise,
)
from orrery.numerics.arithmetic.extension_point import REQUANTISATION


@given(st.floats(2.0**-40, 2.0**20, allow_nan=False), st.integers(4, 31))
def test_a_dyadic_number_is_within_half_a_unit_of_its_last_bit(scale, num_bits):
    try:
        found = nearest_dyadic(scale, num_bits)
    except OutOfRange:
        assert scale >= 2.0 ** (num_bits - 2)  # no shift is left
        return
    assert abs(found.value_ratio / scale - 1.0) <= 2.0**-num_bits or found.shift == 62


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(1, 62), st.sampled_from([4, 8, 16, 32]))
def test_requantising_is_the_rounded_exact_product(total, multiplier, shift, num_bits):
    scale = Dyadic(multiplier=multiplier, shift=shift)
    rounded = floor(Fraction(total * multiplier, 2**shift) + Fraction(1, 2))
    most = 2 ** (num_bits - 1) - 1
    found = requantise(np.array([total], dtype=np.int32), scale, num_bits)
    assert found.dtype == np.int32
    assert found[0] == max(-most, min(most, rounded))


def requantised(name, sums, scale_ratio, **knobs):
    technique = REQUANTISATION.get(name)
    return technique.rule(sums, scale_ratio, technique.knobs(**knobs))


def test_a_float_scale_and_a_dyadic_one_agree_but_where_a_float_is_too_short():
    sums = np.random.default_rng(1).integers(-(2**22), 2**22, 5000)
    by_float, by_integer = (requantised(n, sums, 3e-5) for n in ("float-requantisation", "dyadic-requantisation"))
    assert np.abs(by_float - by_integer).max() <= 1
    assert np.mean(by_float != by_integer) < 1e-3
    with pytest.raises(ScenarioError, match="num_bits"):
        requantised("dyadic-requantisation", sums, 0.1, num_bits=33)


def test_scales_that_no_dyadic_number_reaches_are_refused():
    with pytest.raises(OutOfRange, match="scale the operands"):
        nearest_dyadic(1e12)
    with pytest.raises(ScenarioError, match="more than 0"):
        nearest_dyadic(0.0)
    with pytest.raises(ScenarioError, match="write 0 <= b"):
        Dyadic(multiplier=2**31, shift=3)
