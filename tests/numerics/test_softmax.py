"""Softmax five ways: the same numbers, different traffic, and integers all the way where that is promised."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.arithmetic.exponential import extended_exp, polynomial_exp, shift_exp
from orrery.numerics.arithmetic.extension_point import softmax
from orrery.numerics.arithmetic.ledger import Ledger

FLOAT = ("three-pass-recompute", "three-pass-reload", "two-pass")
INTEGER = ("polynomial-softmax", "shiftmax")
MEMORY_OPERATIONS = {"three-pass-recompute": 4, "three-pass-reload": 5, "two-pass": 3}


def exact(x):
    raised = np.exp(np.asarray(x, dtype=np.float64) - np.max(x, axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def drawn(n=1000, std=2.0, rows=4):
    return np.random.default_rng(n).normal(0.0, std, (rows, n)).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000])
@pytest.mark.parametrize("name", FLOAT)
def test_float_softmax_is_exact_to_single_precision(name, n):
    x = drawn(n)
    np.testing.assert_allclose(softmax(name, x).values, exact(x), rtol=2e-6)


@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize("shift", [-16000.0, -900.0, 0.0, 900.0, 16000.0])
def test_no_score_overflows_and_a_shift_of_all_scores_changes_nothing(name, shift):
    x = drawn(257, std=20.0) + np.float32(shift)
    with np.errstate(over="raise", invalid="raise"):
        y = softmax(name, x).values
    np.testing.assert_allclose(y.sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(y, exact(x), rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize("name", FLOAT)
def test_scores_too_far_apart_for_one_float_still_make_shares(name):
    y = softmax(name, np.array([[16000.0, -16000.0, 15999.0]])).values
    np.testing.assert_allclose(y, exact([[16000.0, -16000.0, 15999.0]]), rtol=1e-5)
    assert y[0, 1] == 0.0


@pytest.mark.parametrize("name", FLOAT)
@pytest.mark.parametrize("n", [16, 1000])
def test_memory_operations_come_out_of_the_passes(name, n):
    assert softmax(name, drawn(n)).num_memory_operations() == MEMORY_OPERATIONS[name]


def test_keeping_exponentials_saves_the_arithmetic_that_two_pass_repeats():
    work = {name: softmax(name, drawn()).num_operations() for name in FLOAT}
    assert work["three-pass-reload"] < 0.6 * work["three-pass-recompute"]
    assert work["three-pass-recompute"] < work["two-pass"] < 1.1 * work["three-pass-recompute"]


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, 2e4])
@pytest.mark.parametrize("name", FLOAT)
def test_scores_that_no_exponent_can_be_taken_from_are_refused(name, x):
    with pytest.raises(OutOfRange, match="write numbers below"):
        softmax(name, np.array([0.0, x]))


def test_an_exponential_pair_is_the_exponential():
    x = np.linspace(-16000, 16000, 20001).astype(np.float32)
    mantissa, exponent = extended_exp(x)
    assert mantissa.dtype == exponent.dtype == np.float32
    assert mantissa.min() > 0.70
    assert mantissa.max() < 1.42
    log2 = np.log2(mantissa.astype(np.float64)) + exponent
    np.testing.assert_allclose(log2, x.astype(np.float64) / np.log(2.0), atol=3e-7)


def test_a_ledger_counts_what_numpy_does():
    ledger = Ledger()
    x = ledger.read(np.ones((2, 8), dtype=np.int16))
    total = np.sum(x * 3 + x, axis=-1)
    ledger.write(total)
    assert (ledger.num_elements_read, ledger.num_elements_written) == (16, 2)
    assert dict(ledger.operations) == {"multiply": 0, "multiply-add": 16, "add": 16}
    assert ledger.types <= {"int16", "int64"}
    x * 0.5
    assert "float64" in ledger.types


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("name", INTEGER)
def test_integer_softmax_never_meets_a_float(name, dtype):
    found = softmax(name, np.arange(-50, 50, dtype=dtype).reshape(2, 50), 0.05)
    assert found.ledger.types == {"int64"}
    assert np.issubdtype(found.codes.dtype, np.integer)
    assert found.codes.min() >= 0
    assert found.codes.max() < 1 << 8


@pytest.mark.parametrize(("name", "most"), [("polynomial-softmax", 0.01), ("shiftmax", 0.06)])
def test_integer_softmax_is_near_the_float_one(name, most):
    codes = np.rint(drawn(128) / 0.004).astype(np.int32)
    found = softmax(name, codes, 0.004, num_output_bits=16).values
    expected = exact(codes * 0.004)
    assert np.abs(found - expected).max() < most * expected.max()
    np.testing.assert_array_less(found.sum(axis=-1), 1.0 + 1e-9)  # shares are rounded down


def test_a_coarse_step_costs_the_polynomial_its_logarithm():
    def worst(step):
        codes = np.rint(drawn(128) / step).astype(np.int32)
        expected = exact(codes * step)
        return (
            np.abs(softmax("polynomial-softmax", codes, step, num_output_bits=16).values - expected).max()
            / expected.max()
        )

    assert worst(0.002) < worst(0.02) < worst(0.1)


@pytest.mark.parametrize(("exp", "most"), [(polynomial_exp, 0.006), (shift_exp, 0.1)])
def test_integer_exponentials_follow_the_exponential(exp, most):
    step = 0.001
    x = np.arange(-8000, 1)
    codes, out_step = exp(x, step, 15)
    assert codes.dtype == np.int64
    np.testing.assert_allclose(codes * out_step, np.exp(x * step), rtol=most)


def test_integer_rules_refuse_floats_and_steps_they_cannot_use():
    with pytest.raises(ScenarioError, match="quantise first"):
        softmax("shiftmax", np.ones(4), 0.1)
    with pytest.raises(OutOfRange, match="requantise"):
        softmax("polynomial-softmax", np.arange(4), 0.5)
    with pytest.raises(OutOfRange, match="bits"):
        softmax("shiftmax", np.array([1 << 20]), 0.1)
    with pytest.raises(ScenarioError, match="num_output_bits"):
        softmax("shiftmax", np.arange(4), 0.1, num_output_bits=17)
    with pytest.raises(ScenarioError, match="Did you mean 'two-pass'"):
        softmax("two-passes", np.arange(4))
