"""Two-pass softmax: memory operations and instructions as the algorithms are counted, on a processor's two roofs."""

from collections.abc import Iterator, Mapping

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.kernel.answer import KernelRow
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.own_devices import device_file

BASELINE, OURS = "recompute", "two-pass"
ALGORITHMS = ("reload", BASELINE, OURS)
ROW = 1 << 24


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gain with each instruction set, and what traffic alone would allow."""
    for claim in ("speedup-avx512", "speedup-avx2"):
        rows = softmax(paper.setups[claim.removeprefix("speedup-")])
        each = {name: _operations(row) for name, row in rows.items()}
        bound = each[BASELINE][0] / each[OURS][0] - 1.0
        counted = ", ".join(f"{name} {moved:g} N, {done:.0f} N" for name, (moved, done) in each.items())
        yield Prediction(
            claim=claim,
            predicted=rows[BASELINE].time_s / rows[OURS].time_s - 1.0,
            because=f"memory operations, then instructions: {counted}; traffic alone allows {percent(bound)}",
            differs="how much of the arithmetic hides behind the memory, and how many threads ran",
        )
        if claim == "speedup-avx512":
            words = f"{each[BASELINE][0]:g} N memory operations against {each[OURS][0]:g} N"
            yield Prediction(claim="within-bound-avx512", predicted=bound, because=words)


def softmax(setup: Setup) -> Mapping[str, KernelRow]:
    """``orrery kernel softmax``: one row that no cache holds, on all cores of the set-up's processor."""
    lanes = setup.number("num_cores") * setup.number("num_vector_units") * setup.number("num_vector_lanes")
    facts = {
        "vector_flops_per_s": 2.0 * lanes * setup.number("core_clock_hz"),
        "memory_bandwidth_bytes_per_s": setup.number("host_memory_bytes_per_s"),
        "compute_clock_hz": setup.number("core_clock_hz"),
        "num_compute_units": setup.number("num_cores"),
    }
    with device_file("xeon-sapphire-rapids", facts) as device:
        rows = kernel_rows("softmax", device=device, tokens=1, width=ROW, variant=",".join(ALGORITHMS))
    return {name: rows[name] for name in ALGORITHMS}


def _operations(row: KernelRow) -> tuple[float, float]:
    """Reads and writes of memory, and instructions, for each element."""
    return row.details["memory_operations_per_element"], row.details["instructions_per_element"]
