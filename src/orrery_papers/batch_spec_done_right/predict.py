"""Batch speculative decoding: rounds of ragged batches, realigned each time or grouped by length from a pool."""

from collections.abc import Iterator
from math import exp, sqrt
from typing import Any

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.simulate import SimulatedAnswer, simulate
from orrery.serving.ragged_run import CALLS_PER_SHIFT
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.setup import settings_of

SIGMA = 1.2
"""Spread of the prompts: see [unstated] prompts."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput of a full batch over that of one sequence; then what realigning takes of the overhead."""
    claims = {claim.id: claim for claim in paper.claims}
    words_of = claims["throughput"].setup
    batch = int(words_of.number("num_batch"))
    gains: dict[str, float] = {}
    grouped = 0.0
    for pair in pairs(words_of):
        one, many = (served(words_of, *pair, size, "pool") for size in (1, batch))
        gains[pair[0]] = many.summary.output_tokens_per_s / one.summary.output_tokens_per_s
        counters = many.simulated.counters
        grouped = counters["grouped_rounds"] / counters["rounds"]
    text = ", ".join(f"{model} {ratio:.2f}" for model, ratio in gains.items())
    yield Prediction(
        claim="throughput",
        predicted=max(gains.values()),
        because=f"{text}; {percent(grouped)} of the rounds find {batch} sequences of one length among "
        f"{words_of.number('num_pool_sequences'):.0f}",
        differs="how often guesses hold and how long prompts are, neither of which was found, and which device ran it",
    )
    shares = [
        served(words_of, *pair, batch, "realign").simulated.counters["align_overhead_frac"] for pair in pairs(words_of)
    ]
    yield Prediction(
        claim="realignment",
        predicted=float(np.mean(shares)),
        because=f"of drafting and realigning, batch {batch}: {CALLS_PER_SHIFT} calls for each layer and sequence",
        differs="the host's time for one call, and a draft model that keeps its cache",
    )


def pairs(setup: Setup) -> Iterator[tuple[str, str]]:
    """Models and those that guess for them."""
    yield from zip(words(setup.word("models")), words(setup.word("draft_model")), strict=True)


def served(setup: Setup, model: str, draft: str, batch: int, way: str) -> SimulatedAnswer:
    """``orrery simulate --draft-batching`` of the set-up's requests, so many at a time."""
    mean = setup.number("input_mean_tokens")
    settings: dict[str, Any] = settings_of(setup, model=model) | {
        "engine": setup.word("engine"),
        "draft_model": draft,
        "draft_tokens": int(setup.number("num_draft_tokens")),
        "acceptance": setup.number("acceptance_frac"),
        "draft_batching": way,
        "concurrency": batch,
        "num_requests": int(setup.number("num_requests")),
        "input_tokens": round(mean),
        "input_tokens_std": mean * sqrt(exp(SIGMA**2) - 1.0),
        "output_tokens": int(setup.number("output_tokens")),
    }
    if way == "pool":
        settings["draft_pool"] = int(setup.number("num_pool_sequences"))
    found = simulate(**settings)
    assert isinstance(found, SimulatedAnswer)
    return found
