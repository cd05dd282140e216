"""GELU in floats, as a parabola in integers, and by shifts."""

import math

import numpy as np
import pytest

from orrery.numerics.arithmetic.extension_point import gelu

CODES = np.arange(-127, 128, dtype=np.int8)


def exact(x):
    return np.array([v * 0.5 * math.erfc(-v / math.sqrt(2.0)) for v in np.ravel(x)]).reshape(np.shape(x))


def test_the_float_rule_is_the_definition():
    x = np.linspace(-6, 6, 101)
    np.testing.assert_allclose(gelu("exact-gelu", x).values, exact(x), atol=1e-15)
    np.testing.assert_allclose(gelu("exact-gelu", CODES, 0.03).values, exact(CODES * 0.03), atol=1e-14)


@pytest.mark.parametrize("name", ["polynomial-gelu", "shift-gelu"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_integer_rules_never_meet_a_float(name, dtype):
    found = gelu(name, CODES.astype(dtype), 0.03)
    assert found.ledger.types == {"int64"}
    assert np.issubdtype(found.codes.dtype, np.integer)


@pytest.mark.parametrize(("name", "most"), [("polynomial-gelu", 0.021), ("shift-gelu", 0.045)])
@pytest.mark.parametrize("step", [0.004, 0.01, 0.03, 0.05])
def test_integer_rules_stay_near_gelu(name, most, step):
    codes = np.arange(-int(4 / step), int(4 / step) + 1)
    assert np.abs(gelu(name, codes, step).values - exact(codes * step)).max() < most


@pytest.mark.parametrize("name", ["polynomial-gelu", "shift-gelu"])
def test_far_from_zero_gelu_is_a_ramp(name):
    far = gelu(name, np.array([-150, 0, 150]), 0.04)
    np.testing.assert_allclose(far.values, [0.0, 0.0, 6.0], atol=0.04)


def test_the_parabola_reads_once_and_the_shifts_twice():
    assert gelu("polynomial-gelu", CODES, 0.03).num_memory_operations() == 2
    assert gelu("shift-gelu", CODES, 0.03).num_memory_operations() == 3


def test_a_large_element_hides_small_ones_unless_there_are_bits_for_its_exponential():
    row = np.array([[-40, -20, 20, 40, 400]])  # the last is 20
    errors = [
        np.abs(gelu("shift-gelu", row, 0.05, num_shift_bits=n).values - exact(row * 0.05))[0, :4].max()
        for n in (15, 24)
    ]
    alone = np.abs(gelu("shift-gelu", row[:, :4], 0.05).values - exact(row[:, :4] * 0.05)).max()
    assert errors[0] > 0.3
    assert alone < 0.04
    row[0, 4] = 160  # 8: beyond 15 halvings, within 23
    errors = [
        np.abs(gelu("shift-gelu", row, 0.05, num_shift_bits=n).values - exact(row * 0.05))[0, :4].max()
        for n in (15, 23)
    ]
    assert errors[1] < 0.1 < errors[0]


def test_rows_of_negative_elements_are_fine():
    row = np.array([[-100, -50, -1]])
    np.testing.assert_allclose(gelu("shift-gelu", row, 0.02).values, exact(row * 0.02), atol=0.03)
