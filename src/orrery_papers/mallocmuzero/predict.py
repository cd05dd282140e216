"""Memory mapping as a game: programs of transformers and convolutions, greedy against looking ahead."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.offload import MAPPINGS
from orrery.execution.offload.mapping import MappingGame, MemoryMapping
from orrery.execution.offload.mapping_graphs import Machine, convolutions, game_of, transformer, with_backward

TRANSFORMERS = tuple(
    with_backward(transformer(layers, 768, 12, sequences, tokens))
    for layers, sequences, tokens in ((2, 16, 512), (3, 32, 256), (4, 8, 512))
)
CONVOLUTIONS = tuple(
    with_backward(convolutions(channels, 2, side, images))
    for channels, side, images in (((64, 128, 256, 512), 224, 16), ((64, 128, 256, 512), 224, 64), ((32, 64), 512, 8))
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The mean saving over the programs of each kind, and how many gain anything."""
    machine, better = machine_of(paper.setups["tpu-v4i"]), 0
    for claim, programs in (("transformer", TRANSFORMERS), ("convolutions", CONVOLUTIONS)):
        saved = [reduction(game_of(p, machine)) for p in programs]
        better += sum(s > 1e-6 for s in saved)
        yield Prediction(
            claim=claim,
            predicted=sum(saved) / len(saved),
            because=f"{len(saved)} programs; a beam of positions, each played to its end greedily",
        )
    yield Prediction(claim="some-better", predicted=float(better), because="programs whose mapping got better")


def machine_of(setup: Setup) -> Machine:
    """The processor and its two memories."""
    return Machine(
        flops_per_s=setup.number("processor_flops_per_s"),
        slow_bytes_per_s=setup.number("slow_memory_bytes_per_s"),
        fast_bytes_per_s=setup.number("fast_memory_bytes_per_s"),
        fast_bytes=setup.number("fast_memory_bytes"),
    )


def reduction(game: MappingGame) -> float:
    """Share of the greedy mapping's time that the search saves."""
    times = [solve(name, game).time_s for name in ("greedy-mapping", "tree-search-mapping")]
    return 1.0 - times[1] / times[0]


def solve(name: str, game: MappingGame) -> MemoryMapping:
    """The mapping that a solver finds."""
    technique = MAPPINGS.get(name)
    return technique.rule(game, technique.knobs())
