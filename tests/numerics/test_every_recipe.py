"""One battery for every recipe, found because its file exists."""

import dataclasses

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Scheme
from orrery.numerics.recipes.prepare import RECIPES, measure, prepare

every = pytest.mark.parametrize("name", sorted(RECIPES.techniques))

SCHEMES = {
    "w4a4": Scheme(weights=grid("mxfp4"), activations=grid("mxfp4")),
    "w4a8": Scheme(weights=grid("int4/32:fp16"), activations=grid("int8/row")),
    "tensor": Scheme(weights=grid("int4/tensor"), activations=grid("e2m1/tensor")),
    "w8a8": Scheme(weights=grid("int8/row"), activations=grid("int8/row")),
    "w4": Scheme(weights=grid("nvfp4")),
}

BETTER_AT = {
    "bias-correction": ("w4a4", "mean"),
    "clipping-search": ("w4a8", "weights"),
    "exponent-bias": ("tensor", "output"),
    "format-search": ("tensor", "output"),
    "gptq": ("w4", "output"),
    "hadamard": ("w4a4", "output"),
    "kurtail": ("w4a4", "output"),
    "learned-rounding": ("w4", "output"),
    "low-rank": ("w4a8", "weights with the low rank"),
    "mr-gptq": ("w4a4", "output"),
    "power-of-two-scales": ("w4a8", "nothing"),
    "qfx": ("tensor", "output"),
    "rearrange": ("w4a4", "output"),
    "round-to-nearest": ("w4a8", "nothing"),
    "smoothquant": ("w8a8", "output"),
    "weight-equalisation": ("tensor", "range"),
}
"""What each recipe claims to lower, and on which formats; nothing, or one that is not listed, only stays near."""


OWN_WIDTH = {"qfx": 16}
"""Recipes that bring formats of their own, and the bits of the widest."""


def run(name, given, scheme, seed=0, **knobs):
    knobs = RECIPES.techniques[name].knobs(**knobs)
    return prepare(given, scheme, [(name, knobs)], np.random.default_rng(seed))


def ran_or_refused(name, given, scheme):
    """The layer, or None where the recipe refuses it and says what to write instead."""
    try:
        return run(name, given, scheme)
    except ScenarioError as refused:
        if "write" not in str(refused):
            raise
    return None


def error_of(what, prepared, given):
    """The error that a recipe claims to lower."""
    if what == "mean":
        found = given.output(given.inputs) - prepared.output(given.inputs)
        return float(np.abs(found.mean(axis=0)).max())
    if what == "weights":
        return measure(prepared, given).weights_error_frac
    if what == "weights with the low rank":
        added = 0.0 if prepared.low_rank is None else (prepared.low_rank[0] @ prepared.low_rank[1]).T
        return float(np.linalg.norm(prepared.exact_weights - prepared.weights - added))
    if what == "range":
        ranges = np.abs(prepared.previous_weights).max(axis=1) / np.abs(prepared.exact_weights).max(axis=0)
        return float(np.abs(np.log(ranges)).max())
    return measure(prepared, given).output_error_frac


@every
def test_with_wide_formats_the_function_stays(name, layer):
    given = layer()
    knobs = {"width_bits": OWN_WIDTH[name]} if name in OWN_WIDTH else {}
    nearly = 2.0 ** (7 - OWN_WIDTH.get(name, 23))
    for scheme in (Scheme(weights=None), Scheme(weights=grid("fp32"), activations=grid("fp32"))):
        found = run(name, given, scheme, **knobs).output(given.held_out)
        exact = given.output(given.held_out)
        assert np.abs(found - exact).max() <= nearly * np.abs(exact).max()


@every
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_same_seed_gives_the_same_layer_and_everything_is_finite(name, scheme, layer):
    given = layer()
    first, second = (run(name, given, SCHEMES[scheme], seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    out = first.output(given.held_out)
    np.testing.assert_array_equal(out, second.output(given.held_out))
    assert out.shape == (len(given.held_out), len(given.weights))
    assert np.isfinite(out).all()
    assert first.extra_bytes >= 0
    assert first.extra_flops_per_token >= 0


@every
def test_what_is_measured_is_what_the_layer_computes(name, layer):
    given = layer()
    prepared = run(name, given, SCHEMES["w4a8"])
    found, exact = prepared.output(given.held_out), given.output(given.held_out)
    got = measure(prepared, given)
    assert got.output_error_frac == pytest.approx(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))
    assert got.output_sqnr_db == pytest.approx(-20 * np.log10(got.output_error_frac))


@every
@pytest.mark.parametrize("shape", [(5, 50), (1, 1), (3, 33)])
def test_a_width_that_no_block_divides_works_or_is_refused_in_one_sentence(name, shape, layer):
    out, width = shape
    given = layer(out=out, width=width, outliers=1)
    if (prepared := ran_or_refused(name, given, SCHEMES["w4a4"])) is not None:
        assert np.isfinite(prepared.output(given.held_out)).all()


@every
@pytest.mark.parametrize("zero", ["weights", "inputs", "a channel of each"])
def test_zeros_stay_zeros_or_are_refused_in_one_sentence(name, zero, layer):
    given = layer()
    weights, inputs = given.weights.copy(), given.inputs.copy()
    if zero == "weights":
        weights[:] = 0
    if zero == "inputs":
        inputs[:] = 0
    if zero == "a channel of each":
        weights[:, 3] = inputs[:, 7] = 0
    given = dataclasses.replace(given, weights=weights, inputs=inputs, held_out=None, bias=None)
    if (prepared := ran_or_refused(name, given, SCHEMES["w4a8"])) is None:
        return
    found = prepared.output(given.inputs)
    assert np.isfinite(found).all()
    if zero != "a channel of each":
        assert not found.any()


@every
def test_a_token_that_is_not_a_number_spoils_only_itself(name, layer):
    given = layer()
    prepared = run(name, given, SCHEMES["w4a8"])
    x = given.held_out.copy()
    x[2, 5] = np.nan
    found, clean = prepared.output(x), prepared.output(given.held_out)
    assert np.isnan(found[2]).all()
    np.testing.assert_array_equal(np.delete(found, 2, axis=0), np.delete(clean, 2, axis=0))


@every
def test_lowers_what_it_claims_to_lower(name, layer):
    scheme, what = BETTER_AT.get(name, ("w8a8", "nothing"))
    pairs = []
    for seed in range(3):
        given = layer(seed)
        with_it, without = run(name, given, SCHEMES[scheme]), run("round-to-nearest", given, SCHEMES[scheme])
        pairs.append((error_of(what, with_it, given), error_of(what, without, given)))
    if what == "nothing":
        assert all(a <= 1.5 * b for a, b in pairs)
    else:
        assert all(a < b for a, b in pairs), pairs


@pytest.mark.parametrize("what", ["weights", "inputs", "held_out", "bias", "previous_weights"])
def test_a_layer_with_anything_but_numbers_is_refused(what, layer):
    given = layer()
    bad = getattr(given, what).copy()
    bad.flat[0] = np.nan
    with pytest.raises(ScenarioError, match=f"{what} holds 1 values"):
        dataclasses.replace(given, **{what: bad})
    with pytest.raises(ScenarioError, match=f"{what} has shape"):
        dataclasses.replace(given, **{what: bad[1:] if what in ("bias", "previous_weights") else bad[:, 1:, None]})
