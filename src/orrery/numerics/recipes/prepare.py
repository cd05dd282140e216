"""Recipes by name, one after the other, and how far the layer that comes out is from the exact one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.base.extension_points import ExtensionPoint
from orrery.numerics.recipes import techniques
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.prepared import Prepared

RECIPES = ExtensionPoint(name="numerics.recipe", folder=techniques, noun="recipe")

Recipe = str | tuple[str, Any]
"""A recipe's name, or its name and its knobs."""


def prepare(layer: Layer, scheme: Scheme, recipes: Sequence[Recipe], rng: np.random.Generator) -> Prepared:
    """The layer after every recipe in order, such as ["smoothquant", ("gptq", Compensation(is_act_order=True))].

    Rounded to nearest where none of them rounds.
    """
    prepared = Prepared.of(layer, scheme)
    for recipe in recipes:
        name, knobs = recipe if isinstance(recipe, tuple) else (recipe, None)
        technique = RECIPES.get(name)
        prepared = technique.rule(prepared, technique.knobs() if knobs is None else knobs, rng)
    return prepared.rounded()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A quantised layer beside the exact one, on activations that no recipe has seen."""

    output_sqnr_db: float
    output_error_frac: float  # root mean square of the error over that of the output
    weights_error_frac: float  # the same of the weights, in the basis they are stored in
    extra_bytes: float
    extra_flops_per_token: float


def measure(prepared: Prepared, layer: Layer) -> Measured:
    """The errors of ``prepared`` as a stand-in for ``layer``, and what it costs on top of the rounded weights."""
    x = layer.judged
    output = _error_frac(layer.output(x), prepared.output(x))
    return Measured(
        output_sqnr_db=float("inf") if output == 0 else float(-20 * np.log10(output)),
        output_error_frac=output,
        weights_error_frac=_error_frac(prepared.exact_weights, prepared.weights),
        extra_bytes=prepared.extra_bytes,
        extra_flops_per_token=prepared.extra_flops_per_token,
    )


def _error_frac(exact: Any, found: Any) -> float:
    """Root mean square of the difference over that of the exact array; 0 of 0 is 0."""
    error, size = np.linalg.norm(found - exact), np.linalg.norm(exact)
    return float(error / size) if size else float(error > 0)
