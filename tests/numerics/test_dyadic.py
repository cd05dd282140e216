"""Dyadic scales, and a small network whose integers are those of exact arithmetic."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.arithmetic.dyadic import (
    Dyadic,
    folded_linear,
    int32_sums,
    nearest_dyadic,
    requantise,
    residual_add,
)
from orrery.numerics.arithmetic.extension_point import requantised


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


def network(rng):
    """Two linear layers with batch norm, a residual branch around the second: (layers, their scales)."""

    def layer(n, k, input_step, output_step):
        return folded_linear(
            rng.normal(size=(n, k)),
            rng.normal(size=n),
            rng.uniform(0.5, 2.0, n),
            rng.normal(size=n),
            input_step_ratio=input_step,
            output_step_ratio=output_step,
        )

    first, second = layer(24, 16, 0.02, 0.11), layer(24, 24, 0.11, 0.37)
    return first, second, nearest_dyadic(0.11 / 0.45), nearest_dyadic(0.37 / 0.45)


def by_hand(x, layer):
    """A layer in Python integers, from its own definition."""
    out = []
    for row in x.tolist():
        out.append([])
        for weights, bias in zip(layer.weights.tolist(), layer.bias.tolist(), strict=True):
            total = sum(w * v for w, v in zip(weights, row, strict=True)) + bias
            rounded = floor(Fraction(total * layer.scale.multiplier, 2**layer.scale.shift) + Fraction(1, 2))
            out[-1].append(max(-127, min(127, rounded)))
    return np.array(out)


@pytest.mark.parametrize("seed", range(5))
def test_the_integer_network_equals_python_integers_bit_for_bit(seed):
    rng = np.random.default_rng(seed)
    first, second, skip_scale, branch_scale = network(rng)
    x = rng.integers(-127, 128, (10, 16)).astype(np.int32)
    hidden = np.maximum(first(x), 0)
    found = residual_add(hidden, skip_scale, second(hidden), branch_scale)

    hidden_by_hand = np.maximum(by_hand(x, first), 0)
    branch = by_hand(hidden_by_hand, second)

    def scaled(v, d):
        return floor(Fraction(int(v) * d.multiplier, 2**d.shift) + Fraction(1, 2))

    expected = [
        [max(-127, min(127, scaled(a, skip_scale) + scaled(b, branch_scale))) for a, b in zip(p, q, strict=True)]
        for p, q in zip(hidden_by_hand, branch, strict=True)
    ]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == hidden.dtype == np.int32
    assert np.unique(found).size > 30  # the network does something


def test_the_integer_layer_is_near_the_float_one():
    rng = np.random.default_rng(7)
    weights, bias, ratio, shift = (
        rng.normal(size=(8, 32)),
        rng.normal(size=8),
        rng.uniform(0.5, 2, 8),
        rng.normal(size=8),
    )
    layer = folded_linear(weights, bias, ratio, shift, input_step_ratio=0.01, output_step_ratio=0.15)
    x = rng.integers(-127, 128, (50, 32)).astype(np.int32)
    exact = np.clip(ratio * (x * 0.01 @ weights.T + bias) + shift, -127 * 0.15, 127 * 0.15)
    assert (
        np.abs(layer(x) * 0.15 - exact).max() < 0.15 / 2 + 0.2
    )  # half a step of the output, and weights of eight bits


def test_a_float_scale_and_a_dyadic_one_agree_but_where_a_float_is_too_short():
    sums = np.random.default_rng(1).integers(-(2**22), 2**22, 5000)
    by_float, by_integer = (requantised(n, sums, 3e-5) for n in ("float-requantisation", "dyadic-requantisation"))
    assert np.abs(by_float - by_integer).max() <= 1
    assert np.mean(by_float != by_integer) < 1e-3
    with pytest.raises(ScenarioError, match="num_bits"):
        requantised("dyadic-requantisation", sums, 0.1, num_bits=33)


def test_an_accumulator_that_could_overflow_is_refused():
    with pytest.raises(OutOfRange, match="32-bit accumulator"):
        int32_sums(np.full((1, 3), 32767, dtype=np.int32), np.full((1, 3), 32767, dtype=np.int32))
    assert int32_sums(np.full((1, 2), 32767), np.full((1, 2), -32767))[0, 0] == -2 * 32767**2


def test_scales_that_no_dyadic_number_reaches_are_refused():
    with pytest.raises(OutOfRange, match="scale the operands"):
        nearest_dyadic(1e12)
    with pytest.raises(ScenarioError, match="more than 0"):
        nearest_dyadic(0.0)
    with pytest.raises(ScenarioError, match="write 0 <= b"):
        Dyadic(multiplier=2**31, shift=3)
