"""ByteScale: one step over long-tailed sequences, ranks by length against a static mesh for the longest."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from orrery.evidence.paper_file import Paper, Setup, get_paper
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.setup import layout_of
from orrery_papers.shared.trained_by import trained

KEY = "bytescale"
WHOLE = 192
"""Sequences of a batch come in multiples of so many, so that they can be dealt out."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The largest speed-up over both ends of the models and the contexts; sizes are the paper's choice."""
    setup = paper.setups["cluster"]
    yield Prediction(
        claim="speedup",
        predicted=max(speedup_ratio(rows) for rows in runs(setup)),
        because="static over hybrid step, the best of 7B and 141B at 256K and 2048K",
        differs="lengths, degrees, batch and the baseline's settings are not written; smaller tensor parallelism or "
        "more very long sequences make the static ring and its waiting longer",
    )


def speedup_ratio(rows: tuple[Mapping[str, Any], ...]) -> float:
    """How many times the fastest step fits into that of the static mesh, which comes first."""
    return rows[0]["step_s"] / min(row["step_s"] for row in rows)


def runs(setup: Setup) -> list[tuple[Mapping[str, Any], ...]]:
    """Every model at every context."""
    names = [name.strip() for name in setup.word("models").split(",")]
    return [run(setup.name, name, int(context)) for name in names for context in setup.numbers("context_tokens_swept")]


@cache
def run(setup_name: str, model: str, context_tokens: int) -> tuple[Mapping[str, Any], ...]:
    """One model at one context, as ``orrery train --sequence-balancing`` has it."""
    setup = get_paper(KEY).setups[setup_name]
    median, spread = setup.number("document_p50_tokens"), setup.number("document_spread_ratio")
    answer = trained(
        model=model,
        device=setup.word("device"),
        devices=int(setup.number("num_devices")),
        devices_per_node=int(setup.number("num_devices_per_node")),
        tp=layout_of(setup.word("layout")).tp,
        seq_len=context_tokens,
        global_batch=WHOLE * max(1, round(setup.number("step_tokens") / context_tokens / WHOLE)),
        seq_lengths=f"lognormal:{median:g}:{spread:g}",
        sequence_balancing=True,
    )
    return answer.table("sequences")
