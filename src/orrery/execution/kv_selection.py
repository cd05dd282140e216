"""Choosing which positions of a prompt stay cached: by the scores of its last tokens, the last ones, or by lot.

SnapKV sums, in each head, what the last tokens of the prompt (the window) give to every position before them, smooths
the sums by an average over neighbours, and keeps the largest beside the window itself [snapkv-2024]. What the choice is
worth is its *recall*: the share of what later tokens attend to that lies on kept positions.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Way = Literal["snapkv", "recent", "random"]
WAYS: tuple[Way, ...] = ("snapkv", "recent", "random")

WINDOW_TOKENS, POOLED_TOKENS = 64, 5
"""Queries that score, and neighbours that are averaged (the authors' code)."""

SCORE_BYTES = 8.0
"""Bytes of one score: FP32, written and read once for the sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLaw:
    """Maps that are drawn: each head has positions that every later token looks at, besides near ones and noise.

    ``hitters_frac`` of the positions start a run of ``run_tokens`` heavy ones with ``strength_ratio`` more in logits;
    a query sees each run with a deviation of ``drift_ratio`` of its own. All assumed: measure maps of your own.
    """

    num_heads: int = 4
    hitters_frac: float = 0.004
    run_tokens: int = 4
    strength_ratio: float = 5.0
    drift_ratio: float = 1.0
    near_tokens: float = 32.0


def drawn_maps(law: AttentionLaw, prompt_tokens: int, later_tokens: int, seed: int) -> tuple[Floats, Bools]:
    """Attention (heads, queries, keys) of the window's and later tokens, and the heavy positions of the prompt.

    Rows sum to 1 over the prompt.
    """
    draws = np.random.default_rng(seed)
    queries = min(WINDOW_TOKENS, prompt_tokens) + later_tokens
    logits = draws.standard_normal((law.num_heads, queries, prompt_tokens))
    heavy = np.zeros((law.num_heads, prompt_tokens), dtype=bool)
    runs = max(1, round(law.hitters_frac * prompt_tokens))
    for head in range(law.num_heads):
        for start in draws.integers(0, max(1, prompt_tokens - law.run_tokens), runs).tolist():
            heavy[head, start : start + law.run_tokens] = True
            own = law.strength_ratio + law.drift_ratio * draws.standard_normal(queries)
            logits[head, :, start : start + law.run_tokens] += own[:, None]
    at = prompt_tokens - queries + later_tokens + np.arange(queries)
    away = at[:, None] - np.arange(prompt_tokens)[None, :]
    logits += 3.0 * np.exp(-np.maximum(away, 0) / law.near_tokens)
    logits = np.where((away < 0)[None], -np.inf, logits)
    weights = np.exp(logits - logits.max(axis=2, keepdims=True))
    return weights / weights.sum(axis=2, keepdims=True), heavy


def chosen(way: Way, scores: Floats, budget: int, *, pooled: int = POOLED_TOKENS, seed: int = 0) -> Bools:
    """Kept positions (heads, keys) by the attention ``scores`` (heads, window, keys) of the window that ends it.

    The window itself always stays; with a budget that small nothing else does.
    """
    heads, window, keys = scores.shape
    if budget < 1:
        raise ScenarioError(f"kv_budget_tokens: got {budget}; write 1 or more.")
    last = min(window, budget, keys)
    retained = np.zeros((heads, keys), dtype=bool)
    retained[:, keys - last :] = True
    rest, more = keys - last, min(budget, keys) - last
    if not more:
        return retained
    if way == "recent":
        retained[:, rest - more : rest] = True
        return retained
    if way == "random":
        draws = np.random.default_rng(seed)
        worth = draws.random((heads, rest))
    else:
        sums = scores.sum(axis=1)[:, :rest]
        side = pooled // 2
        padded = np.pad(sums, ((0, 0), (side, side)))
        worth = np.mean([padded[:, i : i + rest] for i in range(2 * side + 1)], axis=0)
    best = np.argpartition(-worth, more - 1, axis=1)[:, :more]
    np.put_along_axis(retained, best, True, axis=1)
    return retained


def recall_frac(maps: Floats, retained: Bools) -> float:
    """Share of the attention of later tokens (heads, queries, keys) that lies on kept positions."""
    total = float(maps.sum())
    return float((maps * retained[:, None, :]).sum()) / total if total else 0.0


def scoring(num_query_heads: int, head_size: int, layers: float, key_bytes: float) -> tuple[float, float]:
    """(operations, bytes) of scoring one position on the whole model: the window's products with its keys once more.

    Each query head multiplies the window with the key, 2 x window x head size; keys are read again, and scores are
    written and read in FP32.
    """
    flops = 2.0 * WINDOW_TOKENS * head_size * num_query_heads * layers
    return flops, key_bytes + SCORE_BYTES * WINDOW_TOKENS * num_query_heads * layers
