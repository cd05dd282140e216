"""The part of a cache that is kept: a share or a budget of its tokens, or fewer bytes of each."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """The kept share of a prompt once it has been read.

    ``kept_tokens_frac`` of its tokens, at most ``budget_tokens`` of them (0: no limit) and at least ``window_tokens``;
    ``kept_bytes_frac`` of the bytes of each token (fewer layers, heads or bits beside the deployment's own format), of
    later ones too. Choosing takes ``flops_per_token`` and moves ``score_bytes_per_token`` for each token of the prompt,
    on the whole model. ``prompt_tokens`` is the traffic's mean prompt, where steps are known by their context alone.
    """

    kept_tokens_frac: float = 1.0
    budget_tokens: int = 0
    window_tokens: int = 0
    kept_bytes_frac: float = 1.0
    flops_per_token: float = 0.0
    score_bytes_per_token: float = 0.0
    prompt_tokens: float = 0.0

    def __post_init__(self) -> None:
        for name in ("kept_tokens_frac", "kept_bytes_frac"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ScenarioError(f"{name} = {getattr(self, name):g} in Compression; write above 0, up to 1.")
        for name in ("budget_tokens", "window_tokens", "flops_per_token", "score_bytes_per_token", "prompt_tokens"):
            if getattr(self, name) < 0:
                raise ScenarioError(f"{name} = {getattr(self, name):g} in Compression; write 0 or more.")


NOTHING = Compression()
"""Keeps everything."""


def kept_tokens(compression: Compression, prompt_tokens: int, output_tokens: int = 0) -> int:
    """Cached tokens of a sequence, which are also those that it attends to: what is kept of the prompt, and its output.

    The prompt itself attends to all of its tokens: it is read in full before anything is dropped.
    """
    retained = ceil(compression.kept_tokens_frac * prompt_tokens)
    if compression.budget_tokens:
        retained = min(retained, compression.budget_tokens)
    return min(prompt_tokens, max(retained, compression.window_tokens)) + output_tokens


def seen_tokens(compression: Compression, context_tokens: Floats) -> Floats:
    """Tokens' worth that a decode attends to of such contexts: less what was dropped, times the kept bytes."""
    prompt = round(compression.prompt_tokens)
    dropped = prompt - kept_tokens(compression, prompt) if prompt else 0
    return np.maximum(1.0, (context_tokens - dropped) * compression.kept_bytes_frac)
