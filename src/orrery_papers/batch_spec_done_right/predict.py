"""Batch speculative decoding: rounds of ragged batches, realigned each time or grouped by length from a pool."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.whole_prompts import growing_s
from orrery.serving.clock import tick
from orrery.serving.ragged import Rounds, pooled, realigned
from orrery.serving.synthesis.clipped import lognormal_centre
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.passes import decodes, prompts
from orrery_papers.shared.setup import Lognormal, deployment

CALL_S = 1e-5
"""What one eager call of the framework takes the host; assumed: a few microseconds of Python and as many of launch."""

CALLS_PER_SHIFT, CALLS_PER_STACK = 6, 2
"""Calls of one layer: four numbers read back and two copies per sequence; one to join each of keys and values."""

SIGMA = 1.2
"""Spread of the prompts: see [unstated] prompts."""

GRID = 64
LENGTHS = np.arange(1, 33) * GRID
"""At which rounds are costed; one in between costs what the next longer one does."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput of a full batch over that of one sequence; then what realigning takes of the overhead."""
    claims = {claim.id: claim for claim in paper.claims}
    words_of = claims["throughput"].setup
    batch, window = int(words_of.number("num_batch")), int(words_of.number("num_pool_sequences"))
    gains: dict[str, float] = {}
    grouped = 0.0
    for pair in pairs(words_of):
        rounds, drawn = rounds_of(words_of, *pair, batch), lengths(words_of)
        one, many = pooled(rounds, drawn, 1, window), pooled(rounds, drawn, batch, window)
        gains[pair[0]], grouped = many.tokens_per_s / one.tokens_per_s, many.num_grouped / many.num_rounds
    text = ", ".join(f"{model} {ratio:.2f}" for model, ratio in gains.items())
    yield Prediction(
        claim="throughput", predicted=max(gains.values()),
        because=f"{text}; {grouped:.0%} of the rounds find {batch} sequences of one length among {window}",
        differs="how often guesses hold and how long prompts are, neither of which was found, and which device ran it",
    )  # fmt: skip
    shares: list[float] = []
    for pair in pairs(words_of):
        run = realigned(rounds_of(words_of, *pair, batch), lengths(words_of), batch)
        shares.append(run.align_overhead_frac)
    yield Prediction(
        claim="realignment", predicted=float(np.mean(shares)),
        because=f"of drafting and realigning, batch {batch}: {CALLS_PER_SHIFT} calls for each layer and sequence",
        differs="the host's time for one call, and drafting, which reads every prompt again in each round",
    )  # fmt: skip


def pairs(setup: Setup) -> Iterator[tuple[str, str]]:
    """Models and those that guess for them."""
    yield from zip(words(setup.word("models")), words(setup.word("draft_model")), strict=True)


def lengths(setup: Setup) -> Ints:
    """Prompts of the stated mean, cut at the longest."""
    mean, most = setup.number("input_mean_tokens"), setup.number("input_most_tokens")
    law = Lognormal(mu=lognormal_centre(mean, SIGMA, most), sigma=SIGMA, most_tokens=most)
    return law.draw(int(setup.number("num_requests")), stream(0, "lengths/input"))


def rounds_of(setup: Setup, model: str, draft: str, batch: int) -> Rounds:
    """Costs of a round of the pair."""
    engine, guesses = setup.word("engine"), int(setup.number("num_draft_tokens"))
    target, small = deployment(setup, model=model, engine=engine), deployment(setup, model=draft, engine=engine)
    layers = target.model.num_layers

    @cache
    def tables(sequences: int) -> tuple[Floats, Floats]:
        return drafting_s(small, sequences, guesses), checking_s(target, sequences, guesses)

    def shift_s(sequences: int, length: int) -> float:
        return layers * sequences * CALLS_PER_SHIFT * CALL_S + growing_s(target, sequences, length)

    def stack_s(sequences: int, length: int) -> float:
        return layers * CALLS_PER_STACK * CALL_S + growing_s(target, sequences, length)

    return Rounds(
        draft_s=lambda n, length: float(tables(n)[0][length // GRID]),
        check_s=lambda n, length: float(tables(n)[1][length // GRID]), shift_s=shift_s, stack_s=stack_s,
        draft_tokens=guesses, acceptance_frac=setup.number("acceptance_frac"),
        output_tokens=int(setup.number("output_tokens")),
    )  # fmt: skip


def drafting_s(small: Deployment, sequences: int, guesses: int) -> Floats:
    """All guesses of a round: the whole text is read again, then a step for each further guess; by length."""
    many = np.full(LENGTHS.size, sequences)
    return tick(small, prompts(LENGTHS, sequences)).time_s + (guesses - 1) * tick(small, decodes(many, LENGTHS)).time_s


def checking_s(target: Deployment, sequences: int, guesses: int) -> Floats:
    """One step over the last sure token and the guesses of every sequence, after its cache; by length."""
    none = np.zeros_like(LENGTHS)
    batch = Batch(
        prompt_sequences=none + sequences, prompt_tokens=none + guesses + 1,
        prompt_context_tokens=LENGTHS + guesses + 1, decode_sequences=none, decode_context_tokens=none,
    )  # fmt: skip
    return tick(target, batch).time_s
