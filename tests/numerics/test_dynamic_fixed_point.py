"""Dynamic fixed point: exact products in 32-bit accumulators, as long as chains are short enough."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.arithmetic.dynamic_fixed_point import FixedPoint, fixed_point, product, safe_chain
from orrery.numerics.arithmetic.extension_point import accumulated


def drawn(shape, seed=0):
    return fixed_point(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


@given(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1, max_size=20), st.integers(2, 16))
def test_one_exponent_serves_a_tensor_and_nothing_saturates(x, num_bits):
    x = np.array(x, dtype=np.float32)
    found = fixed_point(x, num_bits)
    assert found.codes.dtype == np.int16
    assert found.largest_code <= 2 ** (num_bits - 1) - 1
    assert np.all(np.abs(found.values - x) <= 2.0 ** (found.exponent - 1))
    if x.any():
        assert found.largest_code >= 2 ** (num_bits - 2)  # the codes are filled


def test_two_full_products_fit_an_accumulator_and_three_do_not():
    assert safe_chain(32767, 32767) == 2
    full = FixedPoint(codes=np.full((1, 6), 32767, dtype=np.int16), exponent=0)
    assert product(full, full).num_overflows == 0
    assert product(full, full, chain=2).sums[0, 0] == 6 * 32767**2
    wrapped = product(full, full, chain=3)
    assert wrapped.num_overflows == 2
    assert wrapped.sums[0, 0] != 6 * 32767**2


@given(st.integers(1, 2**15 - 1), st.integers(1, 2**15 - 1))
def test_a_safe_chain_is_the_longest_that_cannot_overflow(a, b):
    chain = safe_chain(a, b)
    assert chain * a * b <= 2**31 - 1 < (chain + 1) * a * b


@pytest.mark.parametrize("length", [1, 5, 64, 301])
def test_chained_products_are_exact(length):
    x, w = drawn((3, length), 1), drawn((4, length), 2)
    found = product(x, w)
    assert found.num_overflows == 0
    exact = [[sum(int(a) * int(b) for a, b in zip(r, s, strict=True)) for s in w.codes] for r in x.codes]
    np.testing.assert_array_equal(found.sums, exact)
    assert found.values[0, 0] == float(Fraction(exact[0][0]) * Fraction(2) ** (x.exponent + w.exponent))


def test_chaining_is_needed():
    x, w = drawn((8, 2048), 3), drawn((8, 2048), 4)
    whole = product(x, w, chain=2048)
    assert whole.num_overflows > 0
    assert whole.num_spills == 1
    assert product(x, w).num_overflows == 0
    assert product(x, w).num_spills > 100


def test_fewer_bits_make_longer_chains_and_larger_errors():
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(8, 512)), rng.normal(size=(8, 512))
    exact, spills, errors = x @ w.T, [], []
    for bits in (16, 14, 12):
        found = product(fixed_point(x, bits), fixed_point(w, bits))
        spills.append(found.num_spills)
        errors.append(np.abs(found.values - exact).max())
    assert spills[0] > spills[1] > spills[2]
    assert errors[0] < errors[1] < errors[2]


def test_float_spills_round_and_int64_spills_do_not():
    x, w = drawn((8, 1024), 6), drawn((8, 1024), 7)
    exact, rounded = product(x, w), product(x, w, spill=np.float32)
    assert rounded.sums.dtype == np.float32
    assert rounded.num_overflows == 0
    assert np.any(rounded.values != exact.values)
    np.testing.assert_allclose(rounded.values, exact.values, rtol=1e-3, atol=1e-4)


def test_sixteen_bits_are_far_closer_than_bfloat():
    rng = np.random.default_rng(8)
    x = rng.normal(size=4096).astype(np.float32)
    relative = np.sqrt(np.mean((fixed_point(x).values - x) ** 2) / np.mean(x**2))
    assert relative < 2.0**-13  # bfloat16 keeps eight bits


def test_the_technique_is_the_chained_product_with_float_spills():
    rng = np.random.default_rng(9)
    x, w = rng.normal(size=(3, 100)), rng.normal(size=(4, 100))
    expected = product(fixed_point(x, 12), fixed_point(w, 12), 8, np.float32).values
    np.testing.assert_array_equal(accumulated("dynamic-fixed-point", x, w, num_bits=12, num_chained=8), expected)
    np.testing.assert_allclose(accumulated("dynamic-fixed-point", x, w), x @ w.T, atol=0.01)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(OutOfRange, match="no exponent"):
        fixed_point(np.array([1.0, np.inf]))
    with pytest.raises(ScenarioError, match="write 2 to 16"):
        fixed_point(np.ones(3), 17)
    with pytest.raises(ScenarioError, match="chain"):
        product(drawn((1, 4)), drawn((1, 4)), chain=0)
    assert not fixed_point(np.zeros(3)).values.any()
