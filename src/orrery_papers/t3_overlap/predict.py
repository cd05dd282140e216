"""T3: products whose tiles start the ring, against products and ring in turns; time and bytes of both."""

from collections.abc import Iterator
from statistics import geometric_mean

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.triggered import (
    CutProduct,
    Machine,
    in_turns,
    read_chunks,
    ring_s,
    triggered,
    written_chunks,
)

RATES = "the rate of products on the simulated device is assumed, and with it which sub-layers the ring can hide behind"
CACHE = "products also read their operands less often, since results no longer fill the last-level cache"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Speed-ups and bytes of the sub-layers; then the counts of chunks."""
    setup = paper.setups["t-nlg"]
    gains = speedups(setup)
    words = f"{len(gains)} sub-layers, {min(gains):.2f} to {max(gains):.2f}"
    yield Prediction(claim="speedup", predicted=geometric_mean(gains) - 1.0, because=words, differs=RATES)
    yield Prediction(claim="speedup-max", predicted=max(gains) - 1.0, because=words, differs=RATES)
    ours = machine(setup)
    moved = [triggered(p, ours).memory_bytes / in_turns(p, ours).memory_bytes for p in products(setup)]
    words = f"{len(moved)} sub-layers move {min(moved):.3f} to {max(moved):.3f} of the bytes"
    yield Prediction(claim="traffic", predicted=1.0 - geometric_mean(moved), because=words, differs=CACHE)
    yield Prediction(claim="traffic-max", predicted=1.0 - min(moved), because=words, differs=CACHE)
    large = speedups(paper.setups["large"])
    yield Prediction(
        claim="speedup-large",
        predicted=geometric_mean(large) - 1.0,
        differs=RATES,
        because=f"{len(large)} sub-layers, {min(large):.2f} to {max(large):.2f}",
    )
    for degree in (8, 16):
        before, after = read_chunks(degree, is_triggered=False), read_chunks(degree, is_triggered=True)
        yield Prediction(
            claim=f"reads-{degree}", predicted=before / after, because=f"{before} chunks in turns, {after} triggered"
        )
    fewer = [
        written_chunks(int(n), is_triggered=True) / written_chunks(int(n), is_triggered=False)
        for n in setup.numbers("degrees_swept")
    ]
    yield Prediction(
        claim="writes",
        predicted=1.0 - geometric_mean(fewer),
        because="the first chunk and the last sum are not written again",
    )
    ideal = [in_turns(p, ours).time_s / whole_s(p, ours) for p in products(setup)]
    yield Prediction(
        claim="ideal-max",
        predicted=max(ideal) - 1.0,
        differs=RATES,
        because="the slower of product and reduce-scatter, then the all-gather; half is the most where all are alike",
    )


def products(setup: Setup) -> list[CutProduct]:
    """The sub-layers of all widths and degrees."""
    return [
        CutProduct(
            num_tokens=int(setup.number("num_product_tokens")),
            num_outputs=int(width),
            num_depth=int(depth * width / degree),
            num_devices=int(degree),
        )
        for width in setup.numbers("model_widths_swept")
        for degree in setup.numbers("degrees_swept")
        for depth in setup.numbers("depths_swept")
    ]


def machine(setup: Setup) -> Machine:
    """The simulated device."""
    return Machine(
        flops_per_s=setup.number("product_flops_per_s") * setup.number("peak_frac"),
        memory_bandwidth_bytes_per_s=setup.number("memory_bandwidth_bytes_per_s"),
        link_each_way_bytes_per_s=setup.number("link_each_way_bytes_per_s"),
        link_latency_s=setup.number("link_latency_s"),
    )


def speedups(setup: Setup) -> list[float]:
    """Speedup of every sub-layer."""
    ours = machine(setup)
    return [in_turns(p, ours).time_s / triggered(p, ours).time_s for p in products(setup)]


def whole_s(product: CutProduct, ours: Machine) -> float:
    """Product and reduce-scatter wholly at once, at the speed that each has alone."""
    ring = ring_s(product, ours)
    alone = in_turns(product, ours).time_s - 2.0 * ring
    return max(alone, ring) + ring
