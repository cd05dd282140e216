"""Sorted keys in block floating point: bits, scores that stay, and errors of scores before and after sorting."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.draws import draw
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import round_trip
from orrery.numerics.recipes.techniques.rearrange import by_magnitude

Floats = NDArray[np.floating]

INPUTS = 256
"""Features that keys are projected from."""

RATIOS = (10.0, 20.0, 40.0, 60.0, 100.0)
"""How much larger outliers are tried to be that fill a whole block, to see where half the width is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """One head: keys, queries that see all channels alike, and the order of channels from the weights."""

    keys: Floats
    queries: Floats
    order: NDArray[np.intp]

    def error_frac(self, format: str, *, is_sorted: bool) -> float:
        """Relative error of scores whose keys are stored in the format."""
        places = self.order if is_sorted else np.arange(len(self.order))
        stored = round_trip(np.ascontiguousarray(self.keys[:, places]), format)
        exact = self.queries @ self.keys.T
        return float(np.linalg.norm(self.queries[:, places] @ stored.T - exact) / np.linalg.norm(exact))


def predict(paper: Paper) -> Iterator[Prediction]:
    """Bits, then scores, then errors."""
    setup = paper.setups["keys"]
    block = int(setup.number("num_block_elements"))
    narrow, wide = (f"{word.strip()}/{block}:ue8m0" for word in setup.word("formats_swept").split(","))
    bits = [parse_format(name).bits_per_element for name in (wide, narrow)]
    yield Prediction(
        claim="memory",
        predicted=bits[0] / bits[1],
        because=f"{bits[0]:g} bits over {bits[1]:g}, the shared exponent of {block} counted",
    )
    heads = heads_of(setup)
    yield Prediction(
        claim="scores-kept",
        predicted=kept_ratio(heads),
        because="queries and keys in the same order: sums of the same terms",
    )
    before, after = mean_error(heads, narrow, is_sorted=False), mean_error(heads, narrow, is_sorted=True)
    yield Prediction(
        claim="sorted-error",
        predicted=after / before,
        because=f"error of scores {percent(before, 1)} before and {percent(after, 1)} after sorting, mean of "
        f"{len(heads)} heads",
    )
    wider = mean_error(heads, wide, is_sorted=False)
    yield Prediction(
        claim="half-width-error",
        predicted=after / wider,
        because=f"error of scores {percent(after, 1)} sorted with short mantissas, {percent(wider, 1)} with long ones "
        f"as they are; {half_is_enough(setup, narrow, wide)}",
        differs="four bits are 24 dB; sorting wins them back where outliers fill whole blocks, and the assumed heads "
        "have one or two. What the paper calls no significant degradation is of perplexity, which forgives some error",
    )


def half_is_enough(setup: Setup, narrow: str, wide: str) -> str:
    """From which size on outliers that fill one block of a head make sorted short mantissas as good as long ones."""
    filled, width = int(setup.number("num_block_elements")), int(setup.number("num_head_features"))
    for ratio in RATIOS:
        weights = draw("normal", (width, INPUTS), 0).astype(np.float64)
        weights[:: width // filled] *= ratio
        head = [_head(weights, int(setup.number("num_calibration_tokens")), 0)]
        if mean_error(head, narrow, is_sorted=True) <= mean_error(head, wide, is_sorted=False):
            return (
                f"the first is no larger where {filled} of {width} channels are {ratio:g} times as large as the others"
            )
    return f"outliers of up to {RATIOS[-1]:g} times the others' size do not change that"


def heads_of(setup: Setup) -> list[Head]:
    """Heads with drawn projections."""
    width, tokens = int(setup.number("num_head_features")), int(setup.number("num_calibration_tokens"))
    heads = range(int(setup.number("num_heads")))
    return [_head(draw("outliers", (INPUTS, width), seed).T.astype(np.float64), tokens, seed) for seed in heads]


def _head(weights: Floats, tokens: int, seed: int) -> Head:
    """A head with that key projection, (channels, inputs)."""
    keys = draw("normal", (tokens, INPUTS), seed) @ weights.T
    queries = draw("normal", (tokens, len(weights)), seed + 1) / np.linalg.norm(weights, axis=1)
    return Head(keys=keys.astype(np.float32), queries=queries, order=by_magnitude(weights.T))


def kept_ratio(heads: list[Head]) -> float:
    """Sizes of scores after sorting over those before."""
    head = heads[0]
    moved = head.queries[:, head.order] @ head.keys[:, head.order].T
    return float(np.vdot(moved, head.queries @ head.keys.T) / np.vdot(moved, moved))


def mean_error(heads: list[Head], format: str, *, is_sorted: bool) -> float:
    """Root mean square over heads."""
    return float(np.sqrt(np.mean([h.error_frac(format, is_sorted=is_sorted) ** 2 for h in heads])))
