"""Attention in eight bits: how far scales and a rotation keep outliers from spoiling everybody's last bits.

Queries, keys and values are rounded to an element format under one scale a tensor or one a block of rows; scores are
summed exactly and softmaxed in float32; probabilities, taken against the row's maximum so that the largest is one, are
rounded with no scale before they meet the values. With a rotation R (orthogonal), queries and keys become Q R and
K R: their products stay, but outliers are spread over all features. Shah et al. 2024, "FlashAttention-3", section 3.3.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_range
from orrery.numerics.codec.rounding import round_to

Array = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFormat:
    """Rounding of attention's operands."""

    element: str = "e4m3fn"
    largest_ratio: float = 448.0  # what the largest magnitude of a scaled group becomes
    block_rows: int = 0  # rows that share a scale; 0: the whole tensor
    rounds_probabilities: bool = True

    def __post_init__(self) -> None:
        check_range(self, "block_rows", 0, 1 << 20)


def attention(q: Array, k: Array, v: Array) -> Floats:
    """softmax(Q K^T / sqrt(d)) V in double precision, for (…, tokens, d)."""
    weights, total = _weights(q.astype(np.float64), k.astype(np.float64))
    return weights @ v.astype(np.float64) / total


def rounded_attention(q: Array, k: Array, v: Array, form: AttentionFormat, rotation: Array | None = None) -> Floats:
    """The same with rounded operands; ``rotation`` is an orthogonal (d, d) matrix."""
    if rotation is not None:
        q, k = q @ rotation, k @ rotation
    weights, total = _weights(scaled_round(q, form), scaled_round(k, form))
    if form.rounds_probabilities:
        weights = round_to(weights.astype(np.float32), form.element).astype(np.float64)
    return weights @ scaled_round(v, form) / total


def scaled_round(x: Array, form: AttentionFormat) -> Floats:
    """Every block of rows divided by its scale, rounded, and multiplied again."""
    rows = form.block_rows or x.shape[-2]
    blocks = [x[..., i : i + rows, :] for i in range(0, x.shape[-2], rows)]
    axes = (-2, -1) if form.block_rows else None  # one scale a tensor: over all heads too
    return np.concatenate([_rounded(b, np.abs(b).max(axis=axes, keepdims=True), form) for b in blocks], axis=-2)


def _rounded(x: Array, largest: Array, form: AttentionFormat) -> Floats:
    scale = np.maximum(largest, np.finfo(np.float32).tiny) / form.largest_ratio
    return round_to((x / scale).astype(np.float32), form.element).astype(np.float64) * scale


def _weights(q: Floats, k: Floats) -> tuple[Floats, Floats]:
    """Exponentials against the row's maximum, and their sum."""
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights, weights.sum(axis=-1, keepdims=True)


def rms_error(exact: Array, approximate: Array) -> float:
    """Root of the mean squared difference."""
    return float(np.sqrt(np.mean((approximate - exact) ** 2)))
