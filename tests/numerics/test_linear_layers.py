"""Linear layers in simulated formats: what their products are, and what they are on average."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.draws import draw
from orrery.numerics.learning import LAYERS, linear
from orrery.numerics.learning.operations import extra_operations
from orrery.numerics.learning.slopes import slope
from orrery.numerics.learning.techniques.integer_linear import IntegerCast, IntegerKnobs
from orrery.numerics.learning.techniques.quartet_linear import HIGHEST, project
from orrery.numerics.learning.techniques.rounded_linear import RoundedKnobs
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import round_trip
from orrery.numerics.rounding import Rounding

NAMES = tuple(LAYERS.techniques)
TOKENS, INPUTS, OUTPUTS = 64, 96, 32


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def operands(rng):
    x = draw("outliers", (TOKENS, INPUTS), 1)
    w = draw("weights", (OUTPUTS, INPUTS), 2)
    return x, w, rng.standard_normal((TOKENS, OUTPUTS)).astype(np.float32)


def run(rule, operands, rng):
    x, w, dy = operands
    y, saved = rule.forward(x, w, rng)
    return y, *rule.backward(saved, dy, rng)


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("name", NAMES)
def test_products_have_the_shapes_of_the_exact_ones_and_are_close(name, operands, rng):
    exact = run(linear("exact-linear"), operands, rng)
    found = run(linear(name), operands, rng)
    for got, want in zip(found, exact, strict=True):
        assert got.shape == want.shape
        assert distance(got, want) < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_same_generator_gives_the_same_products(name, operands):
    first = run(linear(name), operands, np.random.default_rng(3))
    again = run(linear(name), operands, np.random.default_rng(3))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_rounded_products_are_those_of_rounded_operands(operands, rng):
    x, w, dy = operands
    y, dx, dw = run(linear("rounded-linear", inputs="mxfp8", weights="mxfp4", gradients="nvfp4"), operands, rng)
    np.testing.assert_array_equal(y, round_trip(x, "mxfp8") @ round_trip(w, "mxfp4").T)
    np.testing.assert_array_equal(dx, round_trip(dy, "nvfp4") @ round_trip(w.T, "mxfp4").T)
    np.testing.assert_array_equal(dw, round_trip(dy.T, "nvfp4") @ round_trip(x.T, "mxfp8").T)


def test_without_a_second_cast_backward_multiplies_what_forward_did(operands, rng):
    x, w, dy = operands
    rule = linear("rounded-linear", inputs="int8/tensor", weights="int4/row", gradients="", is_cast_again=False)
    _, dx, dw = run(rule, operands, rng)
    np.testing.assert_array_equal(dx, dy @ round_trip(w, "int4/row"))
    np.testing.assert_array_equal(dw, dy.T @ round_trip(x, "int8/tensor"))


def test_a_rotation_alone_changes_nothing(operands, rng):
    exact = run(linear("exact-linear"), operands, rng)
    turned = run(linear("rounded-linear", inputs="", weights="", gradients="", hadamard_elements=32), operands, rng)
    for got, want in zip(turned, exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_a_rotation_lowers_the_error_of_activations_with_outliers(operands, rng):
    exact = run(linear("exact-linear"), operands, rng)[0]
    errors = [
        distance(
            run(linear("rounded-linear", inputs="int4/row", weights="", hadamard_elements=n), operands, rng)[0], exact
        )
        for n in (0, 32)
    ]
    assert errors[1] < errors[0]


def test_a_rotation_that_does_not_fit_is_refused(rng):
    x, w = np.ones((4, 24), np.float32), np.ones((8, 24), np.float32)
    with pytest.raises(ScenarioError, match="no multiple of 16"):
        linear("rounded-linear", hadamard_elements=16).forward(x, w, rng)


def test_stochastic_gradients_are_right_on_average_and_nearest_ones_are_not(operands):
    x, w, dy = operands
    small = dy * np.where(np.arange(OUTPUTS) % 16 == 0, 1.0, 0.02).astype(np.float32)  # lost beside their block

    def mean_error(rounding):
        rule, rng = linear("nvfp4-linear", gradient_rounding=rounding, weights=""), np.random.default_rng(5)
        saved = rule.forward(x, w, rng)[1]
        mean = np.mean([rule.backward(saved, small, rng)[0] for _ in range(200)], axis=0)
        return distance(mean, small @ w)

    assert mean_error(Rounding.STOCHASTIC) < 0.03
    assert mean_error(Rounding.NEAREST_EVEN) > 2.0 * mean_error(Rounding.STOCHASTIC)


def test_nvfp4_weights_are_the_same_in_both_directions(operands, rng):
    _, w, _ = operands
    word = "e2m1/16x16:e4m3fn/tensor"
    np.testing.assert_array_equal(round_trip(w, word), round_trip(w.T, word).T)
    assert not np.array_equal(round_trip(w, "nvfp4"), round_trip(w.T, "nvfp4").T)


def test_nvfp4_block_error_is_within_half_the_widest_step_of_its_block():
    x = draw("student_t", (256, 64), 3)
    blocks, near = x.reshape(-1, 16), round_trip(x, "nvfp4").reshape(-1, 16)
    most = np.abs(blocks).max(axis=1, keepdims=True)
    assert np.all(
        np.abs(blocks - near) <= most / 6.0 * (1.0 + 2**-3)
    )  # steps of 2 at 4 to 6, and the scale's own error


def test_quartet_backward_is_unbiased_for_what_forward_multiplied(operands):
    x, w, dy = operands
    rule, rng = linear("quartet-linear", clip_ratio=10.0), np.random.default_rng(6)  # so that nothing is masked
    _, saved = rule.forward(x, w, rng)
    exact_dx, exact_dw = (dy @ saved[2]), (dy.T @ saved[0])
    samples = [rule.backward(saved, dy, rng) for _ in range(300)]
    from orrery.numerics.rotations.hadamard import inverse

    assert np.all(saved[1] == 1.0)
    assert np.all(saved[3] == 1.0)
    assert distance(np.mean([s[0] for s in samples], axis=0), inverse(exact_dx, 32)) < 0.04
    assert distance(np.mean([s[1] for s in samples], axis=0), inverse(exact_dw, 32)) < 0.04


def test_quartet_masks_exactly_what_it_clips():
    a = draw("normal", (512, 64), 7)
    near, retained = project(a, 2.92247856)
    assert 0.0 < np.mean(retained == 0.0) < 0.05
    clipped = near.reshape(-1, 32)[(retained == 0.0).reshape(-1, 32)]
    unit = np.exp2(np.rint(np.log2(a.reshape(-1, 32).std(axis=1) * 2.92247856 / HIGHEST)))
    where = np.nonzero((retained == 0.0).reshape(-1, 32))[0]
    np.testing.assert_allclose(np.abs(clipped), HIGHEST * unit[where])


def test_quartet_projection_errs_less_than_a_scale_from_the_largest_element():
    a = draw("normal", (512, 64), 8)
    assert distance(project(a, 2.92247856)[0], a) < distance(round_trip(a, "mxfp4"), a)


def test_integers_with_exact_arithmetic_never_reach_the_lowest_code(rng):
    a = draw("normal", (256, 64), 9)
    casts = [IntegerCast(knobs=IntegerKnobs(arithmetic="fp32", is_symmetric=s)) for s in (True, False)]
    np.testing.assert_array_equal(casts[0](a, rng), casts[1](a, rng))


def test_the_lowest_code_shifts_values_down_in_sixteen_bit_arithmetic(rng):
    a = draw("normal", (1024, 256), 10)
    errors = {s: IntegerCast(knobs=IntegerKnobs(is_symmetric=s))(a, rng).astype(np.float64) - a for s in (True, False)}
    sigma = np.std(errors[True]) / np.sqrt(a.size)
    assert abs(errors[True].mean()) < 4.0 * sigma
    assert errors[False].mean() < errors[True].mean() - 1.5 * sigma
    assert np.all(errors[False] <= errors[True])


def test_gaussian_noise_is_zero_as_often_as_a_normal_lies_within_one(rng):
    w = np.ones((512, 512), np.float32)
    sampled = linear("gaussian-weights-linear", weights="").sample(w, rng)
    assert np.mean(sampled == w) == pytest.approx(0.6827, abs=0.005)
    np.testing.assert_allclose(np.unique((sampled - w) * 8.0), np.rint(np.unique((sampled - w) * 8.0)))
    assert np.mean(sampled - w) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(("word", "mantissa_bits"), [("bf16", 7), ("e3m2/none", 2), ("e2m3/none", 3), ("e2m1/none", 1)])
def test_noise_survives_the_cast_of_the_largest_weight_up_to_two_bits_beyond_the_mantissa(word, mantissa_bits, rng):
    w = np.full((32, 32), round_to(np.float32(1.25), word.split("/")[0]), np.float32)

    def survives(bits):
        rule = linear("gaussian-weights-linear", noise_bits=float(bits), weights=word)
        exact = linear("gaussian-weights-linear", noise_bits=float(bits), weights="")
        is_shaken = exact.sample(w, np.random.default_rng(1)) != w
        return np.all(rule.sample(w, np.random.default_rng(1))[is_shaken] != w[is_shaken])

    assert survives(mantissa_bits + 1)
    assert not survives(mantissa_bits + 3)


def test_precision_is_annealed_at_random(rng):
    """Small weights keep all their bits where no noise falls on them, and lose the low ones where it does."""
    w = np.full((64, 64), 1.0, np.float32)
    w[1:] = 2.0**-6 * (1.0 + 2.0**-7)  # in BF16 exactly; the first row sets the size of the noise, an eighth
    sampled = linear("gaussian-weights-linear", weights="bf16").sample(w, rng)[1:32]
    is_shaken = np.abs(sampled) > 0.05
    np.testing.assert_array_equal(sampled[~is_shaken], w[1:32][~is_shaken])
    steps = (
        sampled[is_shaken] / 2.0**-10
    )  # the spacing of BF16 at the noise's size is coarser than the weight's last bit
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_slopes_are_steep_half_way_and_flat_at_the_neighbours():
    w = np.zeros((1, 32), np.float32)
    w[0, :4] = 6.0, 0.25, 0.499, 2.5  # the scale is one; half-way of 0 and 0.5, nearly at 0.5, half-way of 2 and 3
    found = slope(w, parse_format("e2m1/32:ue8m0"), 5.0)[0]
    assert found[1] == 3.0
    assert found[3] == 3.0
    assert found[2] == pytest.approx(0.2, rel=0.01)


def test_operations_add_up_over_six_operands():
    plain = extra_operations(RoundedKnobs(inputs="mxfp4", weights="mxfp4", gradients="mxfp4"))
    assert set(plain.values()) == {0.0}
    full = extra_operations(
        RoundedKnobs(
            inputs="nvfp4",
            weights="nvfp4",
            gradients="nvfp4",
            hadamard_elements=16,
            gradient_rounding=Rounding.STOCHASTIC,
        )
    )
    assert full["rotation"] == 5.0
    assert full["tensor_scale"] == 1.0
    assert full["stochastic_rounding"] == pytest.approx((1.0 + 100.0 / 16.0) / 3.0)
