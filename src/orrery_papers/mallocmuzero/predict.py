"""Memory mapping as a game: programs of transformers and convolutions, greedy against looking ahead."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

SEEDS = 3

TRANSFORMERS = tuple(
    {"program": "transformer", "layers": layers, "sequences": sequences, "tokens": tokens}
    for layers, sequences, tokens in ((2, 16, 512), (3, 32, 256), (4, 8, 512))
)
CONVOLUTIONS = tuple(
    {"program": "convolutions", "channels": channels, "side": side, "images": images}
    for channels, side, images in (("64,128,256,512", 224, 16), ("64,128,256,512", 224, 64), ("32,64", 512, 8))
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The mean saving over the programs of each kind, and how many gain anything."""
    setup, better = paper.setups["tpu-v4i"], 0
    for claim, programs in (("transformer", TRANSFORMERS), ("convolutions", CONVOLUTIONS)):
        saved = [reduction(setup, program) for program in programs]
        better += sum(s > 1e-6 for s in saved)
        yield Prediction(
            claim=claim,
            predicted=sum(saved) / len(saved),
            because=f"{len(saved)} programs, means of {SEEDS} seeds; a beam of positions, each played to its end at "
            f"random: {percent(min(saved), 1)} to {percent(max(saved), 1)}",
        )
    yield Prediction(claim="some-better", predicted=float(better), because="programs whose mapping got better")


def reduction(setup: Setup, program: Mapping[str, Any]) -> float:
    """``orrery experiment memory-mapping``: the share of the greedy mapping's time that the search saves."""
    sizes = {
        **program,
        "flops_per_s": setup.number("processor_flops_per_s"),
        "slow_bytes_per_s": setup.number("slow_memory_bytes_per_s"),
        "fast_ratio": setup.number("fast_memory_bytes_per_s") / setup.number("slow_memory_bytes_per_s"),
        "fast_bytes": setup.number("fast_memory_bytes"),
    }
    found = run_experiment("memory-mapping", seeds=SEEDS, sizes=[f"{name}={value}" for name, value in sizes.items()])
    time_s = {str(row["mapping"]): float(row["time_s"]) for row in found.rows}
    return 1.0 - time_s["tree-search-mapping"] / time_s["greedy-mapping"]
