"""T3: products whose tiles start the ring, against products and ring in turns; time and bytes of both."""

from collections.abc import Iterator, Mapping
from statistics import geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.kernel.answer import KernelRow
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.own_devices import device_file

TURNS, OURS, IDEAL = "in-turns", "triggered", "ideal"
RATES = (
    "the rate of products on the simulated device is assumed, and how much of it they reach is that of other devices; "
    "both decide which sub-layers the ring can hide behind"
)
CACHE = "products also read their operands less often, since results no longer fill the last-level cache"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Speed-ups and bytes of the sub-layers; then the counts of chunks."""
    rows = sublayers(paper.setups["t-nlg"])
    gains = [each[TURNS].time_s / each[OURS].time_s for each in rows]
    words = f"{len(gains)} sub-layers, {min(gains):.2f} to {max(gains):.2f}"
    yield Prediction(claim="speedup", predicted=geometric_mean(gains) - 1.0, because=words, differs=RATES)
    yield Prediction(claim="speedup-max", predicted=max(gains) - 1.0, because=words, differs=RATES)
    moved = [each[OURS].bytes / each[TURNS].bytes for each in rows]
    words = f"{len(moved)} sub-layers move {min(moved):.3f} to {max(moved):.3f} of the bytes"
    yield Prediction(claim="traffic", predicted=1.0 - geometric_mean(moved), because=words, differs=CACHE)
    yield Prediction(claim="traffic-max", predicted=1.0 - min(moved), because=words, differs=CACHE)
    large = [each[TURNS].time_s / each[OURS].time_s for each in sublayers(paper.setups["large"])]
    yield Prediction(
        claim="speedup-large",
        predicted=geometric_mean(large) - 1.0,
        differs=RATES,
        because=f"{len(large)} sub-layers, {min(large):.2f} to {max(large):.2f}",
    )
    yield from _chunks(rows)
    ideal = [each[TURNS].time_s / each[IDEAL].time_s for each in rows]
    yield Prediction(
        claim="ideal-max",
        predicted=max(ideal) - 1.0,
        differs=RATES,
        because="the slower of product and reduce-scatter, then the all-gather; half is the most where all are alike",
    )


def _chunks(rows: list[Mapping[str, KernelRow]]) -> Iterator[Prediction]:
    """Chunks that cross the memory, which follow from how many devices share a product."""
    by_degree = {int(each[OURS].sizes["devices"]): each for each in rows}
    for degree in (8, 16):
        before, after = (int(by_degree[degree][name].details["chunks_read"]) for name in (TURNS, OURS))
        words = f"{before} chunks in turns, {after} triggered"
        yield Prediction(claim=f"reads-{degree}", predicted=before / after, because=words)
    fewer = [
        each[OURS].details["chunks_written"] / each[TURNS].details["chunks_written"] for each in by_degree.values()
    ]
    yield Prediction(
        claim="writes",
        predicted=1.0 - geometric_mean(fewer),
        because="the first chunk and the last sum are not written again",
    )


def sublayers(setup: Setup) -> list[Mapping[str, KernelRow]]:
    """``orrery kernel gemm-reduce-scatter``: the sub-layers of all widths and degrees on the simulated device."""
    facts = {
        "dense_fp16_flops_per_s": setup.number("product_flops_per_s"),
        "dense_bf16_flops_per_s": setup.number("product_flops_per_s"),
        "memory_bandwidth_bytes_per_s": setup.number("memory_bandwidth_bytes_per_s"),
        "scaleup_each_way_bytes_per_s": setup.number("link_each_way_bytes_per_s"),
        "scaleup_latency_s": setup.number("link_latency_s"),
    }
    with device_file(setup.word("device"), facts) as device:
        return [
            kernel_rows(
                "gemm-reduce-scatter",
                device=device,
                m=int(setup.number("num_product_tokens")),
                n=int(width),
                k=int(depth * width / degree),
                devices=int(degree),
            )
            for width in setup.numbers("model_widths_swept")
            for degree in setup.numbers("degrees_swept")
            for depth in setup.numbers("depths_swept")
        ]
