"""What single recipes compute, against slow oracles and known limits, and how recipes compose."""

import dataclasses
from itertools import product

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.quantise import round_trip
from orrery.numerics.recipes.basis import BlockRotation, ChannelScale
from orrery.numerics.recipes.compensated import Compensation, round_compensated
from orrery.numerics.recipes.constrained import PowersOfTwo
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Scheme
from orrery.numerics.recipes.learned import Learning
from orrery.numerics.recipes.prepare import measure, prepare
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.recipes.searched import Searched, clips
from orrery.numerics.recipes.splits import split_grids
from orrery.numerics.recipes.techniques.exponent_bias import ExponentBias
from orrery.numerics.recipes.techniques.low_rank import LowRank
from orrery.numerics.recipes.techniques.mr_gptq import MicroRotated
from orrery.numerics.recipes.techniques.power_of_two_scales import PowerOfTwoScales
from orrery.numerics.rounding import Rounding

FORMATS = [
    "fp32",
    "bf16",
    "int4/row",
    "int8/tensor",
    "mxfp4",
    "mxfp8",
    "mxint8",
    "nvfp4",
    "nvint4",
    "int4/128:fp16",
    "uint4/32:fp16:zero",
    "fp8_block",
    "e3m2/tensor",
    "nf4",
    "int4/4x4",
]


def rng():
    return np.random.default_rng(3)


def error(given, scheme, recipes):
    return measure(prepare(given, scheme, recipes, rng()), given).output_error_frac


@pytest.mark.parametrize("name", FORMATS)
def test_a_grid_rounds_as_the_codec_does(name):
    x = rng().standard_t(3, (37, 70)).astype(np.float32)
    x[3, :32] = 0
    np.testing.assert_array_equal(grid(name).fit(x).round(x), round_trip(x, name))


@pytest.mark.parametrize("name", FORMATS)
def test_below_and_above_are_the_neighbours_of_every_value_within_the_grid(name):
    x = rng().standard_normal((12, 64)).astype(np.float32)
    fitted = grid(name).fit(x)
    below, nearest, above = (fitted.round(x, side) for side in ("below", "nearest", "above"))
    inside = (below <= x) & (x <= above)
    assert inside.mean() > 0.9
    assert ((nearest == below) | (nearest == above))[inside].all()
    assert (np.abs(nearest - x) <= np.minimum(np.abs(below - x), np.abs(above - x)) + 1e-7)[inside].all()


def test_stochastic_rounding_follows_its_seed_and_needs_no_other():
    x = rng().standard_normal((8, 64)).astype(np.float32)
    first, second, third = (grid("mxfp4", rounding=Rounding.STOCHASTIC, seed=s).fit(x).round(x) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != third).any()
    once = grid("mxfp4", rounding=Rounding.STOCHASTIC)
    np.testing.assert_array_equal(once.fit(x).round(x), once.fit(x).round(x))


def slow_gptq(weights, fitted, x, damping_frac):
    """Column by column: the best repair of what is left, from the inverse of what is left of H, made anew each time."""
    hessian = x.T.astype(np.float64) @ x
    hessian += damping_frac * np.diag(hessian).mean() * np.eye(len(hessian))
    left, rounded = weights.astype(np.float64).copy(), np.zeros(weights.shape)
    for j in range(weights.shape[1]):
        inverse = np.linalg.inv(hessian[j:, j:])
        rounded[:, j] = fitted.columns(slice(j, j + 1)).round(left[:, j : j + 1])[:, 0]
        left[:, j:] -= np.outer((left[:, j] - rounded[:, j]) / inverse[0, 0], inverse[0])
    return rounded


@pytest.mark.parametrize(("block", "name"), [*product((1, 7, 128), ("int4/row", "mxfp4"))])
def test_gptq_is_its_definition(layer, block, name):
    given = layer(width=32)
    fitted = grid(name).fit(given.weights)
    fast = round_compensated(given.weights, fitted, given.inputs, Compensation(block_columns=block))
    slow = slow_gptq(given.weights, fitted, given.inputs, 0.01)
    assert np.mean(fast != slow.astype(np.float32)) < 0.005  # ties of two ways to the same sum


def test_gptq_in_another_order_is_gptq_of_the_columns_in_that_order(layer):
    given = layer(width=32)
    order = np.argsort(-np.square(given.inputs.astype(np.float64)).sum(axis=0), kind="stable")
    fitted = grid("int4/row").fit(given.weights)
    there = round_compensated(given.weights, fitted, given.inputs, Compensation(is_act_order=True))
    here = round_compensated(given.weights[:, order], fitted.columns(order), given.inputs[:, order], Compensation())
    np.testing.assert_array_equal(there[:, order], here)


def test_gptq_with_uncorrelated_inputs_is_rounding_to_nearest(layer):
    given = layer(width=32)
    inputs = np.eye(32, dtype=np.float32) * 3
    fitted = grid("int4/row").fit(given.weights)
    np.testing.assert_array_equal(
        round_compensated(given.weights, fitted, inputs, Compensation()), fitted.round(given.weights)
    )


@pytest.mark.parametrize("seed", range(3))
def test_learned_rounding_keeps_to_the_two_neighbours_and_beats_nearest(layer, seed):
    given, scheme = layer(seed, outliers=0), Scheme(weights=grid("int4/row"))
    done = prepare(given, scheme, ["learned-rounding"], rng())
    fitted = scheme.weights.fit(given.weights)
    below, above = (fitted.round(given.weights, side) for side in ("below", "above"))
    assert ((done.weights == below) | (done.weights == above)).all()
    nearest = prepare(given, scheme, ["round-to-nearest"], rng())
    assert measure(done, given).output_error_frac < 0.9 * measure(nearest, given).output_error_frac
    assert measure(done, given).weights_error_frac > measure(nearest, given).weights_error_frac


def test_learned_rounding_comes_near_the_best_of_all_choices(layer):
    given = layer(out=1, width=10, outliers=0)
    fitted = grid("int3/row").fit(given.weights)
    below, above = (fitted.round(given.weights, side)[0] for side in ("below", "above"))
    exact = given.output(given.inputs)
    choices = np.array(list(product((0, 1), repeat=10)))
    outputs = np.where(choices, above, below) @ given.inputs.T.astype(np.float64) + given.bias
    errors = np.square(outputs - exact[:, 0]).sum(axis=1)
    done = prepare(given, Scheme(weights=grid("int3/row")), [("learned-rounding", Learning(num_steps=1000))], rng())
    ours = np.square(done.output(given.inputs) - exact).sum()
    assert np.mean(errors < ours) < 0.02


@pytest.mark.parametrize("rank", [1, 4, 24])
def test_low_rank_is_the_truncated_singular_value_decomposition(layer, rank):
    given = layer()
    done = prepare(given, Scheme(weights=grid("int4/row")), [("low-rank", LowRank(rank=rank))], rng())
    missing = given.weights.astype(np.float64) - done.weights
    right, left = done.low_rank
    assert right.shape == (64, rank)
    assert left.shape == (rank, 24)
    sizes = np.linalg.svd(missing, compute_uv=False)
    rest = np.linalg.norm(missing - (right @ left).T)
    assert rest == pytest.approx(np.sqrt(np.sum(sizes[rank:] ** 2)), abs=1e-9)
    assert done.extra_bytes == 2 * rank * (64 + 24)
    assert done.extra_flops_per_token == 2 * rank * (64 + 24)


def test_bias_correction_leaves_no_mean_error_on_what_it_saw(layer):
    given = layer()
    done = prepare(given, Scheme(weights=grid("int3/row"), activations=grid("int4/row")), ["bias-correction"], rng())
    means = (given.output(given.inputs) - done.output(given.inputs)).mean(axis=0)
    assert np.abs(means).max() < 1e-12 * np.abs(given.output(given.inputs)).max() + 1e-12


def test_equalisation_makes_the_ranges_equal_and_keeps_the_two_layers_together(layer):
    given = layer()
    done = prepare(given, Scheme(weights=None), ["weight-equalisation"], rng())
    before, after = done.previous_weights, done.exact_weights
    np.testing.assert_allclose(np.abs(before).max(axis=1), np.abs(after).max(axis=0), rtol=1e-5)
    z = rng().standard_normal((9, 16)).astype(np.float32)
    relu = np.maximum(z @ given.previous_weights.T + given.previous_bias, 0) @ given.weights.T
    found = np.maximum(z @ before.T + done.previous_bias, 0) @ after.T
    np.testing.assert_allclose(found, relu, rtol=1e-3, atol=1e-3)


def test_equalisation_needs_the_layer_before(layer):
    alone = dataclasses.replace(layer(), previous_weights=None)
    with pytest.raises(ScenarioError, match="previous_weights"):
        prepare(alone, Scheme(weights=None), ["weight-equalisation"], rng())


def test_smoothquant_at_its_ends_moves_nothing_or_everything(layer):
    given = layer()
    done = prepare(given, Scheme(weights=None), ["smoothquant"], rng())
    x, w = np.abs(done.inputs).max(axis=0), np.abs(done.weights).max(axis=0)
    np.testing.assert_allclose(x, w, rtol=1e-4)  # alpha = 1/2: both share the range


@pytest.mark.parametrize("most", [1, 3, 7])
def test_exponent_biases_are_a_scaling_of_channels(layer, most):
    """A float whose codes are read with another bias for each channel, beside the same float of scaled channels."""
    given = layer(spread=1.5)
    step = prepare(given, Scheme(weights=None), [("exponent-bias", ExponentBias(most_shift=most))], rng()).steps[0]
    shift = -np.log2(step.scale)
    assert set(shift) <= set(range(most + 1))
    assert shift.max() == most
    unit = 4.0
    of_channels = [_with_bias(column / unit, int(b)) * unit for column, b in zip(given.inputs.T, shift, strict=True)]
    scaled = round_trip(step.on_activations(given.inputs) / np.float32(unit), "e2m1/none") * np.float32(unit)
    np.testing.assert_array_equal(np.stack(of_channels, axis=1), scaled * np.exp2(-shift).astype(np.float32))


def _with_bias(values, bias):
    """E2M1 with an exponent bias greater by ``bias``: its points one by one, the nearest taken, ties to even codes."""
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]) * 2.0**-bias
    distance = np.abs(np.minimum(np.abs(values), magnitudes[-1])[:, None] - magnitudes)
    is_least = distance == distance.min(axis=1, keepdims=True)
    codes = np.where(is_least, np.arange(8) % 2 * 8 + np.arange(8), 99).argmin(axis=1)
    return (np.sign(values) * magnitudes[codes]).astype(np.float32)


def test_channel_biases_lower_the_error_where_channels_differ_and_no_single_format_does(layer):
    given = layer(spread=1.5, outliers=0)
    fp4 = Scheme(weights=grid("e2m1/row"), activations=grid("e2m1/tensor"))
    int4 = Scheme(weights=grid("int4/row"), activations=grid("int4/tensor"))
    both = error(given, fp4, ["exponent-bias", "format-search"])
    assert both < error(given, fp4, ["format-search"]) < error(given, fp4, [])
    assert both < 0.75 * min(error(given, fp4, []), error(given, int4, []))


def test_a_format_search_finds_the_format_of_values_that_lie_on_one(layer):
    given = layer(outliers=0)
    for bits, name in ((4, "e3m0finite"), (4, "e2m1finite"), (5, "e2m2finite")):
        weights = round_trip(given.weights, f"{name}/row")
        done = prepare(
            dataclasses.replace(given, weights=weights),
            Scheme(weights=grid(f"int{bits}/row")),
            ["format-search"],
            rng(),
        )
        assert done.scheme.weights.grid.format.name == f"{name}/row"
        np.testing.assert_allclose(done.weights, weights, rtol=1e-6)


def test_splits_are_all_ways_to_share_out_the_bits():
    assert [g.format.name for g in split_grids(4, "row")] == ["e1m2finite/row", "e2m1finite/row", "e3m0finite/row"]
    assert all(g.bits_per_element == 8 for g in split_grids(8, "tensor"))


@pytest.mark.parametrize("name", ["int4/row", "int3/16:fp16", "nvfp4", "uint4/32:fp16:zero", "int4/tensor"])
def test_a_search_never_raises_the_error_of_any_scale(name):
    x = rng().standard_t(3, (16, 64)).astype(np.float32)
    plain = grid(name)
    found = Searched(grid=plain, clip_ratios=clips(0.3, 12))
    before, after = (plain.shared_sum(np.square(g.fit(x).round(x) - x)) for g in (plain, found))
    assert (after <= before * (1 + 1e-6)).all()
    assert after.sum() < before.sum()


@pytest.mark.parametrize("is_relative", [False, True])
def test_constrained_scales_are_powers_of_two_apart_and_saturate_nothing(is_relative):
    x = rng().standard_normal((8, 256)).astype(np.float32)
    plain = grid("e2m1/32:fp16").fit(x).scale
    scale = PowersOfTwo(grid=grid("e2m1/32:fp16"), is_relative=is_relative).fit(x).scale
    base = scale.max(axis=1, keepdims=True) if is_relative else 1.0
    np.testing.assert_array_equal(np.log2(scale / base) % 1, 0)
    assert ((scale >= plain * (1 - 1e-6)) & (scale < 2 * plain)).all()
    if is_relative:
        np.testing.assert_allclose(scale.max(axis=1), plain.max(axis=1))


def test_the_relative_constraint_costs_less_than_the_absolute_one(layer):
    scheme = Scheme(weights=grid("e2m1/16:fp16"))
    costs = {}
    for relative in (False, True):
        recipe = ("power-of-two-scales", PowerOfTwoScales(is_relative=relative))
        costs[relative] = np.mean([error(layer(s, width=128), scheme, [recipe]) for s in range(4)])
    free = np.mean([error(layer(s, width=128), scheme, []) for s in range(4)])
    assert free < costs[True]
    assert free < costs[False]


def test_micro_rotation_is_rotation_search_and_compensation_one_after_the_other(layer):
    given = layer()
    scheme = Scheme(weights=grid("mxfp4"), activations=grid("mxfp4"))
    one = prepare(given, scheme, [("mr-gptq", MicroRotated(num_clips=4, is_act_order=False))], rng())
    parts = Prepared.of(given, scheme).with_step(one.steps[0])
    parts = parts.with_grids(weights=Searched(grid=grid("mxfp4"), clip_ratios=clips(0.5, 4)))
    weights = round_compensated(
        parts.weights, parts.scheme.weights.fit(parts.weights), parts.on_grid(parts.inputs), Compensation()
    )
    np.testing.assert_array_equal(one.weights, weights)
    assert one.extra_flops_per_token == 2 * 32 * 64
    assert one.extra_bytes == 0


def test_bases_undo_each_other(layer):
    given = layer()
    q, _ = np.linalg.qr(rng().standard_normal((4, 16, 16)))
    prepared = Prepared.of(given, Scheme(weights=None))
    prepared = prepared.with_step(ChannelScale(scale=np.linspace(0.5, 2, 64)))
    prepared = prepared.with_step(BlockRotation(matrix=q)).with_rounded(
        prepared.with_step(BlockRotation(matrix=q)).weights
    )
    np.testing.assert_allclose(prepared.output(given.inputs), given.output(given.inputs), rtol=1e-4, atol=1e-4)
    assert prepared.extra_bytes == 2 * q.size
    assert prepared.extra_flops_per_token == 2 * 64 * 16


@pytest.mark.parametrize(
    ("recipes", "says"),
    [
        (["gptq", "smoothquant"], "basis after the weights were rounded"),
        (["gptq", "learned-rounding"], "round the weights again"),
        (["clipping-search", "smoothquant"], "basis after the grids"),
        (["gptq", "clipping-search"], "choose a grid after"),
        (["low-rank", "hadamard"], "basis after"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(layer, recipes, says):
    with pytest.raises(ScenarioError, match=says):
        prepare(layer(), Scheme(weights=grid("int4/row")), recipes, rng())


def test_an_unknown_recipe_is_named_with_those_that_are_near(layer):
    with pytest.raises(ScenarioError, match="smoothquant"):
        prepare(layer(), Scheme(weights=grid("int4/row")), ["smothquant"], rng())


def test_recipes_add_up(layer):
    given = layer(outliers=4)
    scheme = Scheme(weights=grid("int4/32:fp16"), activations=grid("int8/row"))
    plain = error(given, scheme, [])
    smooth = error(given, scheme, ["smoothquant"])
    both = error(given, scheme, ["smoothquant", "clipping-search", "gptq"])
    everything = error(given, scheme, ["smoothquant", "clipping-search", "gptq", "low-rank", "bias-correction"])
    assert everything < both < smooth < plain
