"""DMC: answer tokens a second at the largest batch that fits, with the whole cache and with a part of its bytes."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.compression import NOTHING, Compression, compressed
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.shard import cache_of
from orrery.serving.clock import tick
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.passes import decodes
from orrery_papers.shared.setup import deployment

DIFFERS = (
    "lengths and engine are not in the abstract; the gain is the compression itself less what weights and products, "
    "which a step pays whatever is cached, take of it"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The most over the three sizes, at both compressions."""
    for claim in paper.claims:
        if not claim.missing:
            gains = {model: gain(claim.setup, model, layout) for model, layout in sizes(claim.setup)}
            best = max(gains, key=lambda model: gains[model])
            text = ", ".join(f"{model} {ratio:.2f}" for model, ratio in gains.items())
            yield Prediction(
                claim=claim.id, predicted=gains[best],
                because=f"{claim.setup.number('kept_bytes_frac'):g} of the bytes kept, each at its largest batch: "
                f"{text}",
                differs=DIFFERS,
            )  # fmt: skip


def sizes(setup: Setup) -> Iterator[tuple[str, str]]:
    """Models and the degrees that they run with."""
    yield from zip(words(setup.word("models")), words(setup.word("layouts")), strict=True)


def gain(setup: Setup, model: str, layout: str) -> float:
    """How many times more answer tokens a second."""
    served = deployment(setup, model=model, layout=layout)
    part = Compression(kept_bytes_frac=setup.number("kept_bytes_frac"))
    return tokens_per_s(setup, served, part) / tokens_per_s(setup, served, NOTHING)


def tokens_per_s(setup: Setup, served: Deployment, compression: Compression) -> float:
    """At the largest batch whose prompts and whole answers fit; attention sees half of the answer on average."""
    memory = memory_of(served)
    if isinstance(memory, Infeasible):
        return float("nan")
    prompt, answer = setup.number("input_tokens"), setup.number("output_tokens")
    each = compressed(cache_of(served), compression).sequence_bytes(prompt + answer)
    batch = max(1, int(memory.kv_capacity_bytes / each))
    seen = round((prompt + 0.5 * answer) * compression.kept_bytes_frac)
    return batch / float(tick(served, decodes(np.array([batch]), np.array([seen]))).time_s[0])
