"""Two-pass softmax: memory operations and instructions as the algorithms are counted, on a processor's two roofs."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.elementwise.softmax_passes import ALGORITHMS, Processor, counts, run

BASELINE, OURS = "recompute", "two-pass"
ROW = 1 << 24


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gain with each instruction set, and what traffic alone would allow."""
    each = {name: counts(name) for name in ALGORITHMS}
    bound = each[BASELINE].num_memory_operations / each[OURS].num_memory_operations - 1.0
    counted = ", ".join(f"{name} {c.num_memory_operations:g} N, {c.num_instructions:.0f} N" for name, c in each.items())
    for claim in ("speedup-avx512", "speedup-avx2"):
        setup = paper.setups[claim.removeprefix("speedup-")]
        yield Prediction(
            claim=claim,
            predicted=time_s(setup, BASELINE) / time_s(setup, OURS) - 1.0,
            because=f"memory operations, then instructions: {counted}; traffic alone allows {bound:.0%}",
            differs="how much of the arithmetic hides behind the memory, and how many threads ran",
        )
    yield Prediction(claim="within-bound-avx512", predicted=bound, because="4 N memory operations against 3 N")


def time_s(setup: Setup, name: str) -> float:
    """One row that no cache holds, on all cores."""
    lanes = setup.number("num_cores") * setup.number("num_vector_units") * setup.number("num_vector_lanes")
    processor = Processor(
        vector_flops_per_s=2.0 * lanes * setup.number("core_clock_hz"),
        bytes_per_s=setup.number("host_memory_bytes_per_s"),
    )
    return run(name, 1, ROW, processor).time_s
