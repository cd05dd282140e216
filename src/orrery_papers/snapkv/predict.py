"""SnapKV: decoding, and prompts that fit, when only so many positions of a prompt stay cached."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.compression import NOTHING, Compression, kept_tokens
from orrery.execution.host import wall_s
from orrery.execution.layout import Deployment
from orrery.execution.step import step
from orrery.execution.whole_prompts import growing_s, longest_prompt_tokens
from orrery_papers.shared.passes import decodes
from orrery_papers.shared.setup import deployment


def predict(paper: Paper) -> Iterator[Prediction]:
    """A decode step with the full cache and with the kept one; the longest prompts of a batch; the longest of all."""
    claims = {claim.id: claim for claim in paper.claims}
    words = claims["speed"].setup
    full, retained = (decode_s(words, c) for c in (NOTHING, snapped(words)))
    batch = int(words.number("num_batch"))
    yield Prediction(
        claim="speed", predicted=full / retained,
        because=f"batch {batch}: a step of {full * 1e3:.0f} ms with {words.number('input_tokens'):.0f} tokens cached, "
        f"{retained * 1e3:.0f} ms with {words.number('kept_tokens'):.0f}; both caches are copied as they grow",
        differs="the step itself: the engine's host time, which both pay, and how badly its attention fills the device "
        "with so few sequences",
    )  # fmt: skip
    served = serving(words)
    plain, longer = (longest_prompt_tokens(served, batch, c) for c in (NOTHING, snapped(words)))
    yield Prediction(
        claim="memory", predicted=longer / plain,
        because=f"batch {batch}: prompts of {plain} tokens fit whole, of {longer} where each layer keeps a few",
        differs="memory that the authors' engine lost: it was out of memory beyond 16K tokens a prompt, whose weights, "
        "cache and logits fill half of the device here, and lengths were tried by doubling",
    )  # fmt: skip
    alone = claims["context"].setup
    longest = longest_prompt_tokens(serving(alone), 1, snapped(alone))
    yield Prediction(
        claim="context", predicted=float(longest),
        because="one prompt: weights, activations and FP32 logits of all its tokens, and a cache of "
        f"{alone.number('kept_tokens'):.0f}",
    )  # fmt: skip


def serving(words: Setup) -> Deployment:
    """All of the device's memory may be used."""
    return deployment(words, engine=words.word("engine"), utilization_frac=1.0)


def snapped(words: Setup) -> Compression:
    """What is kept of a prompt, chosen by its last tokens: their scores against all of it, in every head."""
    retained, observed = int(words.number("kept_tokens")), int(words.number("observed_tokens"))
    return Compression(budget_tokens=retained, window_tokens=observed)


def decode_s(words: Setup, compression: Compression) -> float:
    """One token of every sequence."""
    served, batch = serving(words), int(words.number("num_batch"))
    seen = kept_tokens(compression, int(words.number("input_tokens")))
    device_s = step(served, decodes(np.array([batch]), np.array([seen]))).time_s + growing_s(served, batch, seen)
    return float(wall_s(served.engine, device_s, batch)[0])
