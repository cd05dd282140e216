"""Layer normalisation in integers, and the square roots it rests on."""

import math

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.arithmetic.extension_point import layer_norm
from orrery.numerics.arithmetic.integer import bitwise_root, fixed_newton_root, newton_root

INTEGER = ("newton-layer-norm", "bitwise-layer-norm", "i-layer-norm")
LARGE = np.concatenate(
    [
        np.arange(1, 2000),
        np.array([2**k + d for k in range(12, 62) for d in (-1, 0, 1)]),
        np.random.default_rng(1).integers(1, 2**61, 2000),
        np.array([i * i for i in range(2**30 - 50, 2**30)]),
    ]
)


def drawn(std, n=384):
    return np.rint(np.random.default_rng(n).normal(40.0, std, (8, n))).astype(np.int32)


@pytest.mark.parametrize("root", [newton_root, bitwise_root])
def test_integer_roots_are_exact(root):
    np.testing.assert_array_equal(root(LARGE), [math.isqrt(int(n)) for n in LARGE])


def test_ten_newton_steps_are_exact_in_the_middle_and_far_off_below():
    middle = np.arange(2**20, 2**38, 2**28 + 12345)
    np.testing.assert_allclose(fixed_newton_root(middle), np.sqrt(middle), rtol=1e-3)
    assert fixed_newton_root(np.array([100]))[0] > 50  # 2^16 halved ten times has not come down to 10


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_integer_rules_never_meet_a_float(name, dtype):
    found = layer_norm(name, drawn(500.0).astype(dtype), 0.01)
    assert found.ledger.types <= {"int64", "bool"}
    assert np.issubdtype(found.codes.dtype, np.integer)


@pytest.mark.parametrize("name", INTEGER)
def test_integer_rules_are_near_the_float_one(name):
    x = drawn(500.0)
    error = np.abs(layer_norm(name, x).values - layer_norm("exact-layer-norm", x).values).max()
    assert error < 0.002  # half a code of the mean, of 500


def test_a_mean_rounded_to_a_code_costs_more_where_codes_are_few():
    worst = [
        np.abs(layer_norm("newton-layer-norm", drawn(s)).values - layer_norm("exact-layer-norm", drawn(s)).values).max()
        for s in (5, 50, 500)
    ]
    assert worst[0] > worst[1] > worst[2]
    assert worst[0] < 0.5 / 5 + 0.02


def test_the_float_rule_centres_and_scales():
    y = layer_norm("exact-layer-norm", drawn(20.0)).values
    np.testing.assert_allclose(y.mean(axis=-1), 0.0, atol=1e-12)
    np.testing.assert_allclose(y.std(axis=-1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("name", ["exact-layer-norm", *INTEGER])
def test_equal_elements_become_zeros(name):
    assert not layer_norm(name, np.full((2, 16), 37)).values.any()


@pytest.mark.parametrize("name", ["newton-layer-norm", "bitwise-layer-norm"])
def test_the_step_of_the_input_cancels(name):
    x = drawn(100.0)
    np.testing.assert_array_equal(layer_norm(name, x, 0.01).values, layer_norm(name, x, 3.0).values)


def test_a_small_spread_is_where_the_fixed_loop_fails():
    x = np.tile([0, 1], (1, 8))
    assert (
        np.abs(layer_norm("newton-layer-norm", x).values - layer_norm("newton-layer-norm", x).values.mean()).max() > 0.6
    )
    assert np.abs(layer_norm("i-layer-norm", x).values).max() < 0.2


def test_floats_and_bad_steps_are_refused():
    with pytest.raises(ScenarioError, match="quantise first"):
        layer_norm("newton-layer-norm", np.ones(4))
    with pytest.raises(ScenarioError, match="more than 0"):
        layer_norm("exact-layer-norm", np.ones(4), 0.0)
