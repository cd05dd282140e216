"""Minifloats and integers of three to eight bits on drawn layers, with every recipe, against lookup tables.

`orrery quantize` rounds weights and activations apart, both integers or both floats: each weight format by every recipe
to exact activations, each pair of formats then with the recipe that keeps most of the output.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.names import get_element
from orrery.numerics.recipes.layer import Layer
from orrery.scenario.quantize import quantize
from orrery.scenario.quantize_pairs import Pair, front
from orrery_papers.shared.drawn_layer import drawn_layer

BASES, ROUNDINGS = ("", "smoothquant+"), ("", "learned-rounding+", "gptq+")
RECIPES = ",".join(f"{basis}{rounding}bias-correction" for basis, rounding in product(BASES, ROUNDINGS))


def predict(paper: Paper) -> Iterator[Prediction]:
    """The widths swept, and who stands on the fronts of error against tables and against bits."""
    transformer = sweep(paper.setups["transformer"])
    by_bits = front(transformer, lambda p: p.bits)
    floats = len(by_bits) - _integers(by_bits)
    yield Prediction(
        claim="floats-by-bits",
        predicted=floats / len(by_bits),
        because=f"floats are {floats} of {len(by_bits)} points where only bits count",
    )
    points = {"convolutional": sweep(paper.setups["convolutional"]), "transformer": transformer}
    widths = [get_element(p.weights.partition("/")[0]).bits for p in points["convolutional"]]
    yield Prediction(claim="narrowest", predicted=min(widths), because="of the formats swept")
    yield Prediction(claim="widest", predicted=max(widths), because="of the formats swept")
    fronts = {name: front(found, lambda p: float(p.num_luts or 0)) for name, found in points.items()}
    both = [point for found in fronts.values() for point in found]
    words = "; ".join(f"{name}: {_integers(found)} of {len(found)} points" for name, found in fronts.items())
    yield Prediction(
        claim="integers-on-front", predicted=_integers(both) / len(both), because=f"integers on the front, {words}"
    )


def sweep(setup: Setup) -> list[Pair]:
    """Every pair of formats of one kind, each with its best recipe."""
    layer = _layer(setup)
    widths = [int(bits) for bits in setup.numbers("bits_swept")]
    integers = [f"int{bits}sym" for bits in widths]
    floats = [f"e{e}m{bits - 1 - e}finite" for bits in widths for e in range(2, bits)]
    with TemporaryDirectory() as folder:
        seen = Path(folder) / "activations.npy"
        np.save(seen, np.concatenate([layer.inputs, layer.judged]))
        return [pair for kind in (integers, floats) for pair in _asked(layer, kind, seen, setup)]


def _asked(layer: Layer, kind: Sequence[str], seen: Path, setup: Setup) -> tuple[Pair, ...]:
    return quantize(
        layer.weights,
        formats=",".join(f"{name}/row" for name in kind),
        activation_formats=",".join(f"{name}/tensor" for name in kind),
        activations=str(seen),
        recipes=RECIPES,
        cost="lut",
        sum_terms=int(setup.number("num_sum_terms")),
    ).pairs


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


def _integers(pairs: Sequence[Pair]) -> int:
    return sum(pair.weights.startswith("int") for pair in pairs)
