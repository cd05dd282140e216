"""Minifloats and integers of three to eight bits on drawn layers, with every recipe, against lookup tables.

Weights and activations are swept apart, both integers or both floats. Each weight format is rounded by every recipe to
exact activations; each pair of formats then keeps the recipe with the least error of the output.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.hardware.lut_count import mac_luts
from orrery.numerics.names import get_element
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.learned import Learning
from orrery.numerics.recipes.prepare import Recipe, prepare
from orrery_papers.shared.drawn_layer import drawn_layer

BASES: tuple[tuple[Recipe, ...], ...] = ((), ("weight-equalisation",), ("smoothquant",))
ROUNDINGS: tuple[Recipe, ...] = ("round-to-nearest", ("learned-rounding", Learning(num_steps=100)), "gptq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A format of weights and one of activations: what they cost and what they lose."""

    weights: str
    activations: str
    error_frac: float
    num_luts: int
    num_bits: int  # of a weight and an activation together

    @property
    def is_integer(self) -> bool:
        """Both are, or both are floats."""
        return self.weights.startswith("int")


def predict(paper: Paper) -> Iterator[Prediction]:
    """The widths swept, and who stands on the fronts of error against tables and against bits."""
    transformer = sweep(paper.setups["transformer"])
    by_bits = front(transformer, "num_bits")
    floats = len(by_bits) - _integers(by_bits)
    yield Prediction(
        claim="floats-by-bits",
        predicted=floats / len(by_bits),
        because=f"floats are {floats} of {len(by_bits)} points where only bits count",
    )
    points = {"convolutional": sweep(paper.setups["convolutional"]), "transformer": transformer}
    widths = [get_element(p.weights).bits for p in points["convolutional"]]
    yield Prediction(claim="narrowest", predicted=min(widths), because="of the formats swept")
    yield Prediction(claim="widest", predicted=max(widths), because="of the formats swept")
    fronts = {name: front(found, "num_luts") for name, found in points.items()}
    both = [point for found in fronts.values() for point in found]
    words = "; ".join(f"{name}: {_integers(found)} of {len(found)} points" for name, found in fronts.items())
    yield Prediction(
        claim="integers-on-front", predicted=_integers(both) / len(both), because=f"integers on the front, {words}"
    )


def sweep(setup: Setup) -> list[Point]:
    """Every pair of formats of one kind, each with its best recipe."""
    layer = _layer(setup)
    widths = [int(bits) for bits in setup.numbers("bits_swept")]
    integers = [f"int{bits}sym" for bits in widths]
    floats = [f"e{e}m{bits - 1 - e}finite" for bits in widths for e in range(2, bits)]
    points: list[Point] = []
    for kind in (integers, floats):
        errors = np.min(
            [_errors(layer, kind, basis, rounding) for basis, rounding in product(BASES, ROUNDINGS)], axis=0
        )
        for (i, weights), (j, activations) in product(enumerate(kind), enumerate(kind)):
            pair = get_element(weights), get_element(activations)
            points.append(
                Point(
                    weights=weights,
                    activations=activations,
                    error_frac=float(errors[i, j]),
                    num_luts=mac_luts(*pair, int(setup.number("num_sum_terms"))).total,
                    num_bits=sum(e.bits for e in pair),
                )
            )
    return points


def front(points: Sequence[Point], cost: str) -> list[Point]:
    """Points that no other point beats in cost and error, cheapest first."""
    retained: list[Point] = []
    for point in sorted(points, key=lambda p: (getattr(p, cost), p.error_frac)):
        if not retained or point.error_frac < retained[-1].error_frac:
            retained.append(point)
    return retained


def _errors(layer: Layer, formats: Sequence[str], basis: tuple[Recipe, ...], rounding: Recipe) -> NDArray[np.floating]:
    """Relative error of the output, (weight formats, activation formats), for one chain of recipes."""
    exact = layer.output(layer.judged)
    rounded = [
        prepare(layer, Scheme(weights=grid(f"{name}/row")), [*basis, rounding, "bias-correction"], stream(0, "recipes"))
        for name in formats
    ]
    x = rounded[0].to_basis(layer.judged)  # the same basis for all
    seen = np.stack([np.asarray(grid(f"{name}/tensor").fit(x).round(x)) for name in formats]).astype(np.float64)
    biases = [np.zeros(len(one.weights)) if one.bias is None else one.bias for one in rounded]
    found = [seen @ one.weights.T + bias - exact for one, bias in zip(rounded, biases, strict=True)]
    return np.linalg.norm(found, axis=(2, 3)) / np.linalg.norm(exact)


def _layer(setup: Setup) -> Layer:
    outliers, width = int(setup.number("num_outlier_channels")), int(setup.number("num_hidden"))
    return drawn_layer(
        0,
        width=width,
        num_outputs=width,
        num_tokens=int(setup.number("num_calibration_tokens")),
        num_outliers=outliers,
        has_light_tails=not outliers,
        is_rectified=not outliers,
        spread_ratio=setup.number("channel_spread_ratio"),
    )


def _integers(points: Sequence[Point]) -> int:
    return sum(point.is_integer for point in points)
