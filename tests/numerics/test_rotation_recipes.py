"""Rotations, orders and learned bases leave a layer's product as it is and make coarse grids fit it better."""

from typing import Any

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.draws import draw
from orrery.numerics.fixed_point.cast import range_point
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.prepare import Recipe, measure, prepare
from orrery.numerics.recipes.techniques.hadamard import Hadamard
from orrery.numerics.recipes.techniques.kurtail import KurTail
from orrery.numerics.recipes.techniques.power_exponent import PowerExponent, PowerGrid
from orrery.numerics.recipes.techniques.qfx import Qfx
from orrery.numerics.recipes.techniques.rearrange import by_magnitude
from orrery.numerics.rotations.hadamard import signs, transform
from orrery.numerics.rotations.learned import lighter_tails

WIDTH = 64


def layer(law: str = "outliers", width: int = WIDTH) -> Layer:
    both = draw(law, (512, width), 1)
    weights = draw("weights", (48, width), 2)
    return Layer(weights=weights, inputs=both[:256], held_out=both[256:])


def kurtosis(x):
    """The fourth central moment of rows over their squared variance; 3 for a normal law."""
    centred = x - x.mean(axis=1, keepdims=True)
    return (centred**4).mean(axis=1) / (centred**2).mean(axis=1) ** 2


def factors(seed: int, rows: int = 1024, width: int = WIDTH, rank: int = 6) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Activations of a few heavy-tailed factors, each spread over features of different size, and noise."""
    fixed = np.random.default_rng(0)
    mix = fixed.standard_normal((rank, width)) * np.exp(fixed.standard_normal(width))
    rng = np.random.default_rng(seed)
    noise = 0.3 * rng.standard_normal((rows, width))
    return (rng.standard_t(3.0, (rows, rank)) @ mix + noise).astype(np.float32)


def sqnr_db(layer: Layer, recipes: list[Recipe], format: str = "int4/row") -> float:
    scheme = Scheme(weights=grid(format), activations=grid(format))
    return measure(prepare(layer, scheme, recipes, np.random.default_rng(0)), layer).output_sqnr_db


ROTATIONS: list[Recipe] = [
    "hadamard",
    ("hadamard", Hadamard(block_channels=16)),
    ("kurtail", KurTail(num_steps=10)),
    ("kurtail", KurTail(num_steps=10, block_channels=16)),
    "rearrange",
]


@pytest.mark.parametrize("recipe", ROTATIONS, ids=str)
def test_the_layer_stays_exact_where_nothing_is_rounded(recipe: Recipe):
    exact = layer()
    found = prepare(exact, Scheme(weights=None), [recipe], np.random.default_rng(0))
    assert np.allclose(found.output(exact.judged), exact.output(exact.judged), atol=1e-3)


@pytest.mark.parametrize("recipe", ["hadamard", "kurtail"])
def test_rotations_make_four_bits_fit_activations_with_outliers(recipe: str):
    assert sqnr_db(layer(), [recipe]) > sqnr_db(layer(), []) + 3.0


def test_a_learned_rotation_beats_random_hadamards_on_heavy_tailed_activations():
    exact = Layer(weights=draw("weights", (48, WIDTH), 2), inputs=factors(1), held_out=factors(2))
    scheme = Scheme(weights=None, activations=grid("int4/row"))
    learned = measure(prepare(exact, scheme, ["kurtail"], np.random.default_rng(0)), exact).output_sqnr_db
    drawn = [
        measure(prepare(exact, scheme, ["hadamard"], np.random.default_rng(s)), exact).output_sqnr_db for s in range(5)
    ]
    assert learned > max(drawn) + 1.0


def test_what_is_learned_is_a_rotation_with_lighter_tails_on_rows_it_has_not_seen():
    rotation = lighter_tails(factors(1), num_steps=60, turn_ratio=0.1, seed=0)
    assert np.allclose(rotation @ rotation.T, np.eye(WIDTH))
    start = transform(factors(2) * signs(WIDTH, 0))
    assert kurtosis(factors(2) @ rotation).mean() < kurtosis(start).mean() - 0.2


def test_without_steps_it_is_the_random_hadamard_that_it_starts_from():
    x = factors(1)
    assert np.allclose(
        x @ lighter_tails(x, num_steps=0, turn_ratio=0.1, seed=3), transform(x * signs(WIDTH, 3)), atol=1e-4
    )


def test_tails_that_no_rotation_can_foresee_are_not_learnt_by_heart():
    x, new = (np.random.default_rng(s).standard_t(4.0, (300, WIDTH)) for s in (1, 2))
    learned = kurtosis(new @ lighter_tails(x, num_steps=60, turn_ratio=0.1, seed=0)).mean()
    assert learned < kurtosis(transform(new * signs(WIDTH, 0))).mean() + 0.1


def test_widths_without_a_hadamard_matrix_start_from_a_drawn_rotation():
    rotation = lighter_tails(factors(1, width=10), num_steps=3, turn_ratio=0.1, seed=0)
    assert np.allclose(rotation @ rotation.T, np.eye(10))


def test_learning_needs_activations_and_blocks_that_divide_them():
    with pytest.raises(ScenarioError, match="zero"):
        lighter_tails(np.zeros((4, 8)), num_steps=1, turn_ratio=0.1, seed=0)
    with pytest.raises(ScenarioError, match="divisor"):
        sqnr_db(layer(), [("kurtail", KurTail(block_channels=48))])


def test_a_rotation_costs_nothing_where_it_is_folded_and_its_transform_otherwise():
    scheme = Scheme(weights=grid("int4/row"))
    rng = np.random.default_rng(0)
    folded = prepare(layer(), scheme, [("hadamard", Hadamard(is_folded=True))], rng)
    online = prepare(layer(), scheme, [("hadamard", Hadamard(block_channels=16))], rng)
    assert (folded.extra_flops_per_token, folded.extra_bytes) == (0.0, 0.0)
    assert online.extra_flops_per_token == WIDTH * (1 + 4)
    assert online.extra_bytes == WIDTH / 8


def scores(width: int = 512) -> Layer:
    """Keys with outlier channels, and queries as small there as keys are large: channels add alike to the scores."""
    keys = draw("outliers", (512, width), 1)
    queries = draw("normal", (64, width), 2) / np.sqrt(np.square(keys).mean(axis=0))
    return Layer(weights=queries, inputs=keys[:256], held_out=keys[256:])


def scores_db(format: str, recipes: list[Recipe]) -> float:
    scheme = Scheme(weights=None, activations=grid(format))
    return measure(prepare(scores(), scheme, recipes, np.random.default_rng(0)), scores()).output_sqnr_db


@pytest.mark.parametrize("format", ["mxint4", "mxfp4", "fixed4_2sym/16:ue8m0", "int4/64"])
def test_sorted_keys_lose_less_in_blocks(format: str):
    assert scores_db(format, ["rearrange"]) > scores_db(format, []) + 2.5


def test_sorting_helps_narrow_words_more_than_wide_floats():
    gains = [scores_db(f, ["rearrange"]) - scores_db(f, []) for f in ("fixed4_2sym/32:ue8m0", "e5m2/32:ue8m0")]
    assert gains[0] > gains[1] + 3.0


def test_sorted_blocks_of_four_bits_match_blocks_of_eight_where_every_block_has_a_strong_outlier():
    gain = np.ones(256)
    gain[::8] = 100.0
    keys = draw("normal", (512, 256), 1) * gain.astype(np.float32)
    layer = Layer(weights=draw("normal", (64, 256), 2) / gain, inputs=keys[:256], held_out=keys[256:])
    found: dict[str, float] = {}
    for format, recipes in (("fixed4_2/32:ue8m0", ["rearrange"]), ("fixed8_6/32:ue8m0", [])):
        scheme = Scheme(weights=None, activations=grid(format))
        found[format] = measure(prepare(layer, scheme, recipes, np.random.default_rng(0)), layer).output_sqnr_db
    assert found["fixed4_2/32:ue8m0"] > found["fixed8_6/32:ue8m0"]


def test_sorting_does_nothing_where_one_scale_spans_all_features():
    exact = layer()
    assert sqnr_db(exact, ["rearrange"], "int4/row") == pytest.approx(sqnr_db(exact, [], "int4/row"), abs=1e-4)


def test_the_order_goes_from_the_largest_feature_down_and_keeps_ties():
    assert by_magnitude(np.array([[1.0, -3.0, 2.0, 1.0]])).tolist() == [1, 2, 0, 3]


def test_a_power_lies_between_the_powers_of_its_neighbours():
    powered = PowerGrid(grid=grid("int4/row"), exponent=0.5)
    values = draw("student_t", (4, 64), 3).astype(np.float64)
    fitted = powered.fit(values)
    below, above = fitted.round(values, "below"), fitted.round(values, "above")
    nearest = fitted.round(values)
    slack = 1e-5 * np.abs(values)
    assert (below <= values + slack).all()
    assert (values <= above + slack).all()
    assert (np.isclose(nearest, below) | np.isclose(nearest, above)).all()
    assert powered.bits_per_element == grid("int4/row").bits_per_element


@pytest.mark.parametrize("law", ["normal", "student_t", "laplace"])
def test_a_searched_power_beats_even_steps_at_equal_bits(law: str):
    assert sqnr_db(layer(law), ["power-exponent"]) > sqnr_db(layer(law), []) + 0.5


def test_an_exponent_of_one_changes_nothing():
    one: list[Recipe] = [("power-exponent", PowerExponent(exponent=1.0))]
    assert sqnr_db(layer(), one) == pytest.approx(sqnr_db(layer(), []), abs=1e-6)


@pytest.mark.parametrize("law", ["normal", "student_t", "outliers"])
@pytest.mark.parametrize("bits", [4, 6])
def test_learned_points_beat_points_that_let_nothing_overflow(law: str, bits: int):
    exact = layer(law)
    formats = [f"fixed{bits}_{range_point(tensor, bits)}/none" for tensor in (exact.weights, exact.inputs)]
    placed = prepare(
        exact, Scheme(weights=grid(formats[0]), activations=grid(formats[1])), [], np.random.default_rng(0)
    )
    assert sqnr_db(exact, [("qfx", Qfx(width_bits=bits))]) > measure(placed, exact).output_sqnr_db + 1.0


def test_learning_points_and_weights_beats_choosing_points_where_features_differ_in_size():
    both = draw("outliers", (3072, WIDTH), 1)
    exact = Layer(weights=draw("weights", (48, WIDTH), 2), inputs=both[:2048], held_out=both[2048:])
    chosen = sqnr_db(exact, [("qfx", Qfx(width_bits=4, num_steps=0))])
    assert sqnr_db(exact, [("qfx", Qfx(width_bits=4))]) > chosen + 0.3


def test_weights_without_multipliers_are_sums_of_few_powers():
    found = prepare(
        layer("normal"), Scheme(weights=None), [("qfx", Qfx(num_powers=1, num_steps=20))], np.random.default_rng(0)
    )
    sizes = np.abs(found.weights[found.weights != 0])
    assert np.array_equal(np.log2(sizes), np.rint(np.log2(sizes)))
