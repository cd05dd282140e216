"""The kernels of a decoder-only transformer in plain NumPy, FP32: what is timed, and what the reference model runs.

Each function is one op of ``orrery.kernels.ops``; one step of a model is these and nothing else.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

EPSILON = np.float32(1e-6)


def product(x: Array, weight: Array) -> Array:
    """``Gemm``: tokens x k by k x n."""
    return x @ weight


def norm(x: Array, residual: Array, gain: Array) -> Array:
    """``Elementwise`` "norm": adds ``x`` to the residual stream in place; its root-mean-square norm, scaled."""
    residual += x
    scale = np.float32(1.0) / np.sqrt(np.mean(np.square(residual), axis=-1, keepdims=True) + EPSILON)
    return np.asarray(residual * scale * gain, dtype=np.float32)


def gated_activation(gate_and_up: Array) -> Array:
    """``Elementwise`` "gated_activation": SiLU of the first half of the columns times the second."""
    gate, up = np.split(gate_and_up, 2, axis=-1)
    return np.asarray(gate / (np.float32(1.0) + np.exp(-gate)) * up, dtype=np.float32)


def softmax(x: Array) -> Array:
    """``Elementwise`` "softmax": of each row."""
    weight = np.exp(x - x.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight


def sample(logits: Array) -> NDArray[np.int64]:
    """``Elementwise`` "sample": the likeliest token of each row, by its probability."""
    weight = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.argmax(weight / weight.sum(axis=-1, keepdims=True), axis=-1)


def rotate(x: Array, past_tokens: int) -> Array:
    """Rotary embedding of tokens x heads x size whose first token stands at ``past_tokens``."""
    half = x.shape[-1] // 2
    turn = np.arange(past_tokens, past_tokens + len(x), dtype=np.float32)[:, None, None]
    angle = turn * np.float32(10_000.0) ** (-np.arange(half, dtype=np.float32) / half)
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def attend(query: Array, key: Array, value: Array, keys: Array, values: Array, past_tokens: int) -> Array:
    """Causal attention of one sequence: ``AttentionPrefill`` for a prompt or chunk, ``AttentionDecode`` for one token.

    ``query`` is tokens x heads x size, ``key`` and ``value`` tokens x kv_heads x size; ``keys`` and ``values`` are the
    cache, kv_heads x capacity x size, which takes the new tokens in. Rotary embedding included.
    """
    tokens, heads, size = query.shape
    kv_heads, context = key.shape[1], past_tokens + tokens
    keys[:, past_tokens:context] = rotate(key, past_tokens).swapaxes(0, 1)
    values[:, past_tokens:context] = value.swapaxes(0, 1)
    grouped = rotate(query, past_tokens).reshape(tokens, kv_heads, heads // kv_heads, size).transpose(1, 2, 0, 3)
    rows = grouped.reshape(kv_heads, -1, size) * np.float32(size**-0.5)
    score = rows @ keys[:, :context].swapaxes(1, 2)
    if tokens > 1:
        hidden = ~np.tri(tokens, context, past_tokens, dtype=np.bool_)
        score.reshape(heads, tokens, context)[:, hidden] = -np.inf
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    mixed = (weight @ values[:, :context]).reshape(kv_heads, heads // kv_heads, tokens, size)
    return mixed.transpose(2, 0, 1, 3).reshape(tokens, heads * size)
