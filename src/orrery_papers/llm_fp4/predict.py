"""LLM-FP4: searched four-bit floats with channel biases beside plain ones, on drawn layers whose channels differ."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.parse import parse_format
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.prepare import prepare
from orrery_papers.shared.drawn_layer import drawn_layer, mean_error


def predict(paper: Paper) -> Iterator[Prediction]:
    """Ratios of the output's error, and how far folded biases are from scaled channels."""
    setup = paper.setups["w4a4"]
    layers = _layers(setup)
    fp4, int4 = (name.strip() for name in setup.word("formats_swept").split(","))
    yield Prediction(claim="bits", predicted=parse_format(fp4).element_bits, because=f"of {fp4}")
    plain, integers = (mean_error(layers, f"{name}/row", f"{name}/tensor", []) for name in (fp4, int4))
    searched, biased = (
        mean_error(layers, f"{fp4}/row", f"{fp4}/tensor", recipes)
        for recipes in (["format-search"], ["exponent-bias", "format-search"])
    )
    for claim, base in (("over-fp4", plain), ("over-int4", integers), ("biases-over-search", searched)):
        yield Prediction(
            claim=claim, predicted=biased / base, because=f"error of the output {biased:.3f} beside {base:.3f}"
        )
    yield Prediction(
        claim="biases-equal-scales",
        predicted=max(map(folding_error_frac, layers)),
        because="output with biases folded into the weights and nothing rounded, beside the exact one",
    )


def folding_error_frac(layer: Layer) -> float:
    """Largest change of any output by the biases alone, as a share of the largest: powers of two move none."""
    folded = prepare(layer, Scheme(weights=None), ["exponent-bias"], np.random.default_rng(0))
    exact = layer.output(layer.judged)
    return float(np.abs(folded.output(layer.judged) - exact).max() / np.abs(exact).max())


def _layers(setup: Setup) -> list[Layer]:
    width = int(setup.number("num_hidden"))
    return [
        drawn_layer(
            seed,
            width=width,
            num_outputs=width // 2,
            num_tokens=int(setup.number("num_calibration_tokens")),
            spread_ratio=setup.number("channel_spread_ratio"),
        )
        for seed in range(2)
    ]
