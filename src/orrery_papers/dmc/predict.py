"""DMC: answer tokens a second at the largest batch that fits, with the whole cache and with a part of its bytes."""

from collections.abc import Iterator
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer, estimate
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.setup import settings_of

MAX_SEQUENCES = 1024
"""Sequences of a step: more than any of the caches holds."""

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
                claim=claim.id,
                predicted=gains[best],
                because=f"{claim.setup.number('kept_bytes_frac'):g} of the bytes kept, each at its largest batch: "
                f"{text}",
                differs=DIFFERS,
            )


def sizes(setup: Setup) -> Iterator[tuple[str, str]]:
    """Models and the degrees that they run with."""
    yield from zip(words(setup.word("models")), words(setup.word("layouts")), strict=True)


def gain(setup: Setup, model: str, layout: str) -> float:
    """How many times more answer tokens a second."""
    part = tokens_per_s(setup, model, layout, setup.number("kept_bytes_frac"))
    return part / tokens_per_s(setup, model, layout, 1.0)


def tokens_per_s(setup: Setup, model: str, layout: str, kept_bytes_frac: float) -> float:
    """``orrery estimate --kv-kept-bytes`` of the largest batch that the cache holds: tokens over a decode step."""
    settings: dict[str, Any] = settings_of(setup, model=model, layout=layout) | {
        "engine": "vllm",
        "engine_version": "0",
        "max_num_seqs": MAX_SEQUENCES,
        "input_tokens": int(setup.number("input_tokens")),
        "output_tokens": int(setup.number("output_tokens")),
        "kv_kept_bytes": kept_bytes_frac,
    }
    one = estimate(**settings, batch=1)
    if not isinstance(one, Answer):
        return float("nan")
    batch = max(1, int(one.room.max_sequences))
    full = estimate(**settings, batch=batch)
    assert isinstance(full, Answer)
    return batch / full.estimate.decode_step_s
