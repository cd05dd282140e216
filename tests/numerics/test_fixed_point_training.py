"""Fixed point with learned binary points: its casts, its gradients, its circuits to the bit, and what learning buys."""

from collections.abc import Mapping

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Row
from orrery.numerics.experiments.fixed_perceptron import FixedPerceptron, with_points
from orrery.numerics.experiments.networks import start
from orrery.numerics.experiments.steps import Pass
from orrery.numerics.experiments.studies.qfx import EXPERIMENT, RULE_OF
from orrery.numerics.fixed_point.cast import (
    cast,
    codes_of,
    least_error_point,
    range_point,
    shifted,
    with_gradients,
    word,
)
from orrery.numerics.fixed_point.hardware import Circuit
from orrery.numerics.fixed_point.powers import few_powers, shift_add, terms
from orrery.numerics.learning.linear import Array
from orrery.numerics.rounding import Rounding

SHIFTABLE = [r for r in Rounding if not r.is_drawn]


def by_hand(x: float, bits: int, fraction_bits: int) -> float:
    """The definition, one number at a time; Python rounds halves to even."""
    code = min(max(round(x * 2**fraction_bits), -(2 ** (bits - 1))), 2 ** (bits - 1) - 1)
    return code / 2**fraction_bits


@pytest.mark.parametrize(("bits", "fraction_bits"), [(4, 2), (8, 6), (8, -3), (12, 14), (2, 0)])
def test_the_cast_is_its_definition(bits: int, fraction_bits: int):
    x = np.random.default_rng(0).standard_normal(300) * 2.0 ** (bits - fraction_bits - 2)
    assert cast(x, word(bits, fraction_bits)).tolist() == [by_hand(v, bits, fraction_bits) for v in x]
    assert np.array_equal(
        codes_of(x, word(bits, fraction_bits)) / 2.0**fraction_bits, cast(x, word(bits, fraction_bits))
    )


@pytest.mark.parametrize("rounding", SHIFTABLE)
@pytest.mark.parametrize("shift", [0, 1, 3, 7, -2])
def test_shifting_whole_numbers_rounds_like_casting_reals(rounding: Rounding, shift: int):
    accumulator = np.arange(-3000, 3000)
    exact = cast(accumulator / 2.0**shift, word(32, 0), rounding)
    assert np.array_equal(shifted(accumulator, shift, rounding), exact.astype(np.int64))


def test_a_shift_cannot_draw():
    with pytest.raises(ScenarioError, match="write"):
        shifted(np.arange(4), 1, Rounding.STOCHASTIC)


def test_the_slope_by_the_point_is_that_of_the_mean_error():
    # Over many numbers the straight-through slope of the squared error follows the true one.
    x = np.random.default_rng(0).standard_normal(200_000)
    for f, expected_sign in ((-1, -1), (0, -1), (4, 1), (5, 1)):
        out, back = with_gradients(x, word(4, f))
        assert np.sign(back(out - x)[1]) == expected_sign, f
        worse, better = word(4, f), word(4, f - expected_sign)
        assert np.square(cast(x, better) - x).sum() < np.square(cast(x, worse) - x).sum()


def test_nothing_flows_to_numbers_that_saturate():
    _, back = with_gradients(np.array([0.3, 9.0, -9.0]), word(4, 2))
    assert back(np.ones(3))[0].tolist() == [1.0, 0.0, 0.0]


def test_points_after_training_hold_all_or_err_least():
    x = np.random.default_rng(0).standard_t(3.0, 2000)
    f = range_point(x, 8)
    assert np.abs(cast(x, word(8, f)) - x).max() <= 2.0**-f / 2
    assert np.abs(cast(x, word(8, f + 1)) - x).max() > 2.0 ** -(f + 1) / 2
    errors = {g: np.square(cast(x, word(8, g)) - x).sum() for g in range(-4, 12)}
    assert least_error_point(x, 8) == min(errors, key=lambda g: errors[g])
    with pytest.raises(ScenarioError, match="finite"):
        least_error_point(np.array([np.nan]), 8)


@pytest.mark.parametrize("num_powers", [1, 2, 3])
def test_few_powers_are_the_nearest_sums_that_greedy_choice_gives(num_powers: int):
    codes = np.arange(-128, 128)
    signs, exponents = terms(codes, num_powers)
    assert np.isin(signs, (-1, 0, 1)).all()
    assert (exponents >= 0).all()
    assert np.array_equal(few_powers(codes, num_powers), (signs * 2**exponents).sum(axis=0))
    if num_powers == 1:
        powers = np.array([0] + [s * 2**e for e in range(9) for s in (1, -1)])
        nearest = np.abs(codes[:, None] - powers).min(axis=1)
        assert np.array_equal(np.abs(few_powers(codes, 1) - codes), nearest)


def test_more_powers_err_less_and_four_make_every_eight_bit_number():
    codes = np.arange(-128, 128)
    errors = [int(np.abs(few_powers(codes, k) - codes).sum()) for k in (1, 2, 3, 4)]
    assert errors[0] > errors[1] > errors[2] > errors[3] == 0


def test_shifts_and_additions_are_the_product():
    rng = np.random.default_rng(0)
    x, w = rng.integers(-128, 128, (7, 20)), few_powers(rng.integers(-128, 128, (5, 20)), 2)
    assert np.array_equal(shift_add(x, w, 2), x @ w.T)


@pytest.mark.parametrize("num_powers", [0, 2])
@pytest.mark.parametrize("bits", [4, 8, 12])
def test_the_circuit_gives_the_trained_network_to_the_bit(bits: int, num_powers: int):
    network = FixedPerceptron(widths=(12, 20, 6), width_bits=bits, num_powers=num_powers)
    weights = with_points(start(network, np.random.default_rng(1)), (bits - 3, bits - 1, bits - 4, bits - 2, bits - 3))
    x = np.random.default_rng(2).standard_normal((200, 12)).astype(np.float32)
    emulated = answer(network, weights, x)
    circuit = network.circuit(weights)
    assert np.array_equal(circuit.output(x.astype(np.float64)), emulated)
    assert len(np.unique(emulated)) > 8  # not merely zeros


def test_a_circuit_saturates_instead_of_wrapping_around():
    circuit = Circuit(width_bits=4, points=(0, 0, 0), weights=(np.array([[7, 7]]),))
    assert circuit.codes(np.array([[7, 7], [-8, -8], [1, 0]])).tolist() == [[7], [-8], [7]]


def test_gradients_of_the_network_match_differences_where_casts_are_fine():
    # With many bits rounding is negligible, so that straight-through gradients are the true ones.
    network = FixedPerceptron(widths=(5, 7, 3), width_bits=30)
    weights = with_points(start(network, np.random.default_rng(1)), (20, 24, 20, 24, 20))
    x = np.random.default_rng(2).standard_normal((4, 5))
    run = Pass(weights=weights, rule_of=RULE_OF, rng=np.random.default_rng(0))
    y, back = network.step(run)(x)
    back(y)  # of the sum of squares / 2
    for name in network.layers:
        moved = {k: v.astype(np.float64) for k, v in weights.items()}
        moved[name][1, 2] += 1e-3
        there = 0.5 * np.square(answer(network, moved, x)).sum()
        assert (there - 0.5 * np.square(y).sum()) / 1e-3 == pytest.approx(run.gradients[name][1, 2], rel=0.02, abs=1e-3)


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    return EXPERIMENT(seed=0, steps=200)


@pytest.mark.parametrize("bits", [4, 5, 6])
def test_learned_points_lose_far_less_than_points_that_let_nothing_overflow(rows: tuple[Row, ...], bits: int):
    loss = losses(rows, bits)
    assert loss["learned"] < 0.8 * loss["no overflow, weights trained on"] < 0.8 * loss["no overflow"]


def test_learned_points_lose_less_than_the_best_points_set_after_training(rows: tuple[Row, ...]):
    ratios = [losses(rows, bits)["learned"] / losses(rows, bits)["least error"] for bits in (4, 5, 6)]
    assert np.prod(ratios) ** (1 / 3) < 0.95


def test_two_powers_of_two_are_every_four_bit_weight_and_cost_accuracy_at_eight(rows: tuple[Row, ...]):
    loss = {(r["width_bits"], r["points"]): float(r["loss"]) for r in rows}
    assert loss[4, "learned, two powers of two"] == loss[4, "learned"]
    assert loss[8, "learned, two powers of two"] > loss[8, "learned"]


def losses(rows: tuple[Row, ...], bits: int) -> dict[str, float]:
    return {str(r["points"]): float(r["loss"]) for r in rows if r["width_bits"] == bits}


def answer(network: FixedPerceptron, weights: Mapping[str, Array], x: Array) -> Array:
    return network.step(Pass(weights=weights, rule_of=RULE_OF, rng=np.random.default_rng(0)))(x)[0]
