"""ZeroQuant-FP: four-bit weights and eight-bit activations with outliers, floats beside integers, on drawn layers."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.recipes.layer import Layer
from orrery.numerics.recipes.prepare import Recipe
from orrery.numerics.recipes.techniques.power_of_two_scales import PowerOfTwoScales
from orrery_papers.shared.drawn_layer import drawn_layer, mean_error

FP8, INT8 = "e4m3fn/row", "int8/row"

CONSTRAINT = (
    "one layer's output error is compared, and the paper compares perplexities of models, which it moves little; "
    "a scale rounded up to a power of two is 1.4 times as coarse on average"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Ratios of the output's error, each between two recipes that differ in one thing."""
    setup = paper.setups["w4a8"]
    layers = _layers(setup)
    fp4, int4 = (
        f"{name.strip()}/{setup.number('num_block_elements'):.0f}:fp16"
        for name in setup.word("formats_swept").split(",")
    )
    alone = {name: mean_error(layers, "", name, []) for name in (FP8, INT8)}
    yield Prediction(
        claim="fp8-activations",
        predicted=alone[FP8] / alone[INT8],
        because=f"exact weights, activations in {FP8}: error {alone[FP8]:.4f}, in {INT8}: {alone[INT8]:.4f}",
    )
    m1, m2 = (("power-of-two-scales", PowerOfTwoScales(is_relative=is_relative)) for is_relative in (False, True))
    free, other = error(layers, fp4), error(layers, int4)
    absolute, relative, low = error(layers, fp4, m1), error(layers, fp4, m2), error(layers, fp4, after="low-rank")
    found = {
        "fp4-weights": (free, other),
        "constraint-m2": (relative, free),
        "constraint-m1": (absolute, free),
        "m2-before-m1": (relative, absolute),
        "low-rank": (low, free),
    }
    for claim, (ours, base) in found.items():
        yield Prediction(
            claim=claim,
            predicted=ours / base,
            because=f"error of the output {ours:.4f} beside {base:.4f}",
            differs=CONSTRAINT if claim.startswith("constraint") else "",
        )


def _layers(setup: Setup) -> list[Layer]:
    width = int(setup.number("num_hidden"))
    return [
        drawn_layer(
            seed,
            width=width,
            num_outputs=width // 2,
            num_tokens=int(setup.number("num_calibration_tokens")),
            num_outliers=int(setup.number("num_outlier_channels")),
        )
        for seed in range(2)
    ]


def error(layers: list[Layer], weights: str, grid: Recipe = "round-to-nearest", after: Recipe = "") -> float:
    """With FP8 activations: a choice of the grid, GPTQ, then a correction."""
    chosen = [] if grid == "round-to-nearest" else [grid]
    return mean_error(layers, weights, FP8, [*chosen, "gptq", *([after] if after else [])])
