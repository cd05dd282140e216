"""Two-pass softmax: memory operations and instructions as the algorithms are counted, on a processor's two roofs."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.arithmetic.computed import Computed
from orrery.numerics.arithmetic.seam import softmax

BASELINE, OURS = "three-pass-recompute", "two-pass"
ELEMENT_BYTES = 4.0
NUM_ELEMENTS = 4096


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gain with each instruction set, and what traffic alone would allow."""
    scores = np.random.default_rng(0).normal(size=NUM_ELEMENTS).astype(np.float32)
    runs = {name: softmax(name, scores) for name in (BASELINE, "three-pass-reload", OURS)}
    before, after = runs[BASELINE], runs[OURS]
    bound = before.num_memory_operations() / after.num_memory_operations() - 1.0
    counted = ", ".join(
        f"{name} {r.num_memory_operations():g} N, {r.num_operations():.0f} N" for name, r in runs.items()
    )
    for claim in ("speedup-avx512", "speedup-avx2"):
        setup = paper.setups[claim.removeprefix("speedup-")]
        yield Prediction(
            claim=claim, predicted=element_s(setup, before) / element_s(setup, after) - 1.0,
            because=f"memory operations, then instructions: {counted}; traffic alone allows {bound:.0%}",
            differs="how much of the arithmetic hides behind the memory, and how many threads ran",
        )  # fmt: skip
    yield Prediction(claim="within-bound-avx512", predicted=bound, because="4 N memory operations against 3 N")


def element_s(setup: Setup, run: Computed) -> float:
    """Time of one element on all cores: bytes over the bandwidth, then instructions over what the units start."""
    lanes = setup.number("num_cores") * setup.number("num_vector_units") * setup.number("num_vector_lanes")
    moving = run.num_memory_operations() * ELEMENT_BYTES / setup.number("host_memory_bytes_per_s")
    return moving + run.num_operations() / (lanes * setup.number("core_clock_hz"))
