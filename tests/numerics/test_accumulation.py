"""Orders and widths of accumulation: exact where they can be, different in the last bits, and told apart by them."""

from fractions import Fraction
from math import floor, frexp

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.arithmetic.accumulation import PLATFORMS, Platform, fused_sum, product
from orrery.numerics.arithmetic.extension_point import accumulated


def operands(seed, m=16, n=16, k=128):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(n, k)).astype(np.float16)


def cut(value, place):
    """Towards zero at a power of two."""
    whole = floor(abs(value) / Fraction(2) ** place)
    return (1 if value >= 0 else -1) * whole * Fraction(2) ** place


def fused_by_hand(running, addends, guard):
    """One addition of a matrix unit in exact fractions."""
    terms = [Fraction(float(running)), *(Fraction(float(a)) for a in addends)]
    largest = max(frexp(float(abs(t)))[1] for t in terms if t) if any(terms) else 0
    total = sum(cut(t, largest - 24 - guard) for t in terms)
    return float(cut(total, frexp(float(abs(total)))[1] - 24)) if total else 0.0


@pytest.mark.parametrize("guard", [0, 1, 2, 3])
@pytest.mark.parametrize("fused", [1, 4, 16])
def test_a_fused_sum_is_that_of_exact_fractions(guard, fused):
    rng = np.random.default_rng(guard * 100 + fused)
    running = rng.normal(size=200).astype(np.float32) * 3
    a, b = rng.normal(size=(2, 200, fused)).astype(np.float16).astype(np.float64)
    found = fused_sum(running, a * b, guard)
    expected = [fused_by_hand(r, p, guard) for r, p in zip(running, a * b, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.float32))


@pytest.mark.parametrize("name", PLATFORMS)
def test_sums_that_are_exact_in_any_order_are_exact_on_every_platform(name):
    rng = np.random.default_rng(3)
    x, w = rng.integers(-8, 9, (5, 200)), rng.integers(-8, 9, (7, 200))
    np.testing.assert_array_equal(product(x, w, PLATFORMS[name]), x @ w.T)


@pytest.mark.parametrize("name", PLATFORMS)
def test_platforms_differ_from_the_exact_product_by_last_bits_only(name):
    x, w = operands(1)
    exact = x.astype(float) @ w.astype(float).T
    scale = np.abs(x.astype(float)) @ np.abs(w.astype(float)).T
    assert np.abs(product(x, w, PLATFORMS[name]) - exact).max() < 128 * 2.0**-23 * scale.max()


def test_no_two_platforms_give_the_same_bits():
    x, w = operands(2)
    seen = {product(x, w, p).tobytes() for p in PLATFORMS.values()}
    assert len(seen) == len(PLATFORMS)


def test_more_guard_bits_and_fewer_sums_err_less_where_nothing_cancels():
    x, w = (np.abs(o) for o in operands(4, k=512))
    exact = x.astype(float) @ w.astype(float).T

    def error(**knobs):
        return np.abs(product(x, w, Platform(**knobs)) - exact).mean()

    assert (
        error(num_fused=8, num_guard_bits=0)
        > error(num_fused=8, num_guard_bits=1)
        > error(num_fused=8, num_guard_bits=3)
    )
    assert error(num_fused=4, num_guard_bits=0) > error(num_fused=16, num_guard_bits=0)
    assert error(num_fused=16, num_guard_bits=0) > error(num_fused=16, num_guard_bits=0, num_splits=4)


def test_cut_sums_lean_towards_zero_and_rounded_ones_do_not():
    x, w = np.abs(operands(5)[0]), np.abs(operands(5)[1])
    exact = x.astype(float) @ w.astype(float).T
    assert np.all(product(x, w, PLATFORMS["volta"]) <= exact)
    off = product(x, w, PLATFORMS["vector"]) - exact
    assert (off > 0).mean() == pytest.approx(0.5, abs=0.15)


def test_the_technique_is_the_platform_of_its_knobs():
    x, w = operands(6)
    found = accumulated("emulated-accumulation", x, w, num_fused=16, num_guard_bits=2, num_splits=4)
    np.testing.assert_array_equal(found, product(x, w, PLATFORMS["hopper split-k"]))


@pytest.mark.parametrize("knob", ["num_fused", "num_splits", "num_lanes"])
def test_a_platform_without_units_is_refused(knob):
    with pytest.raises(ScenarioError, match=knob):
        Platform(**{"num_fused": 1, "num_guard_bits": None, knob: 0})
