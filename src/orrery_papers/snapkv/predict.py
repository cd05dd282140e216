"""SnapKV: decoding, and prompts that fit, when only so many positions of a prompt stay cached."""

from collections.abc import Iterator
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.whole_prompts import longest_prompt_tokens
from orrery.scenario.ask import Answer, estimate
from orrery_papers.shared.setup import settings_of

OUTPUT_TOKENS = 256
"""Tokens of an answer; a decode step hardly follows it behind so long a prompt."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """A decode step with the full cache and with the kept one; the longest prompts of a batch; the longest of all."""
    claims = {claim.id: claim for claim in paper.claims}
    words = claims["speed"].setup
    full, chosen = estimated(words), estimated(words, is_chosen=True)
    batch, recall = int(words.number("num_batch")), chosen.to_json()["kv_selection"]["recall_fracs"]
    yield Prediction(
        claim="speed",
        predicted=full.estimate.tpot_s / chosen.estimate.tpot_s,
        because=f"batch {batch}: {full.estimate.tpot_s * 1e3:.0f} ms a token with {words.number('input_tokens'):.0f} "
        f"tokens cached, {chosen.estimate.tpot_s * 1e3:.0f} ms with {words.number('kept_tokens'):.0f}, which hold "
        f"{percent(recall['snapkv'])} of later attention on drawn maps (by lot {percent(recall['random'])})",
        differs="the step itself: the engine's host time, which both pay, a cache that is copied as it grows, and how "
        "badly attention fills the device with so few sequences",
    )
    plain, longer = (longest(words, batch, is_chosen=is_chosen) for is_chosen in (False, True))
    yield Prediction(
        claim="memory",
        predicted=longer / plain,
        because=f"batch {batch}: prompts of {plain} tokens fit whole, of {longer} where each layer keeps a few",
        differs="memory that the authors' engine lost: it was out of memory beyond 16K tokens a prompt, whose weights, "
        "cache and logits fill half of the device here, and lengths were tried by doubling",
    )
    alone = claims["context"].setup
    most = longest(alone, 1, is_chosen=True)
    yield Prediction(
        claim="context",
        predicted=float(most),
        because="one prompt: weights, activations and FP32 logits of all its tokens, and a cache of "
        f"{alone.number('kept_tokens'):.0f}",
    )


def estimated(words: Setup, *, is_chosen: bool = False) -> Answer:
    """``orrery estimate --kv-selection snapkv`` of the set-up's batch; all of the device's memory may be used."""
    tokens = int(words.number("input_tokens"))
    settings: dict[str, Any] = settings_of(words) | {
        "engine": words.word("engine"),
        "gpu_memory_utilization": 1.0,
        "batch": int(words.number("num_batch")),
        "input_tokens": tokens,
        "output_tokens": OUTPUT_TOKENS,
        "max_model_len": tokens + OUTPUT_TOKENS,
    }
    if is_chosen:
        settings |= {"kv_selection": "snapkv", "kv_budget_tokens": int(words.number("kept_tokens"))}
    found = estimate(**settings)
    assert isinstance(found, Answer)
    return found


def longest(words: Setup, batch: int, *, is_chosen: bool) -> int:
    """The longest prompt of so many equal ones that the deployment of the estimate takes."""
    served = estimated(words, is_chosen=is_chosen).question.deployment
    return longest_prompt_tokens(served, batch, served.compression)
