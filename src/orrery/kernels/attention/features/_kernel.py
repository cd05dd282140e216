"""Features of an attention kernel for a learned correction: sixteen ratios and logarithms a row, no plain seconds."""

import math

import numpy as np

from orrery.base.compiled import Floats, Floats2, Ints, compiled
from orrery.kernels.attention._kernel import TERMS, decode_one, prefill_one, put

PREFILL_FEATURES = (
    "log_batch",
    "log_query_tokens",
    "log_context_ratio",
    "log_heads",
    "log_group",
    "head_size",
    "window_ratio",
    "log_waves",
    "wave_rest",
    "log_longest_tile",
    "launch_frac",
    "entry_frac",
    "log_computing_ratio",
    "alone_ratio",
    "log_cache_ratio",
    "log_launch_ratio",
)
DECODE_FEATURES = (
    "log_batch",
    "log_seen_tokens",
    "log_unseen_ratio",
    "log_heads",
    "log_group",
    "head_size",
    "has_window",
    "log_columns_ratio",
    "wave_rest",
    "num_splits",
    "launch_frac",
    "entry_frac",
    "log_reading_ratio",
    "is_per_head",
    "log_cache_ratio",
    "log_launch_ratio",
)


def prefill_row(
    batch: int,
    query: int,
    context: int,
    heads: int,
    kv_heads: int,
    key_size: int,
    window: int,
    cache: float,
    out: Floats,
    x: Floats,
) -> None:
    """Features of a prefill kernel for a learned correction: ratios and logs, no plain seconds. In
    ``PREFILL_FEATURES``.
    """
    time = max(out[0], 1e-30)
    x[0] = math.log2(max(1, batch))
    x[1] = math.log2(max(1, query))
    x[2] = math.log2(max(1, context) / max(1, query))
    x[3] = math.log2(max(1, heads))
    x[4] = math.log2(max(1, heads) / max(1, kv_heads))
    x[5] = key_size
    x[6] = min(1.0, window / max(1, context)) if window > 0 else 2.0
    x[7] = math.log2(max(out[9], 1e-6))
    x[8] = math.ceil(out[9]) / out[9] if out[9] > 1.0 else 1.0 / max(out[9], 1e-3)
    x[9] = math.log2(max(out[11], 1e-3))
    x[10] = out[3] / time
    x[11] = out[8] / time
    x[12] = math.log2(max(out[6], 1e-30) / max(out[7], 1e-30))
    x[13] = out[10] / max(out[6], 1e-30)
    x[14] = math.log2(max(out[5], 1.0) / max(cache, 1.0))
    x[15] = math.log2(time / max(out[3], 1e-30))


def decode_row(
    batch: int,
    context: int,
    heads: int,
    kv_heads: int,
    size: int,
    window: int,
    query: int,
    cache: float,
    out: Floats,
    x: Floats,
) -> None:
    """As ``prefill_row``, for a decode step, in ``DECODE_FEATURES``."""
    time = max(out[0], 1e-30)
    seen = max(1.0, float(context))
    if window > 0:
        seen = min(seen, window + query - 1.0)
    x[0] = math.log2(max(1, batch))
    x[1] = math.log2(seen)
    x[2] = math.log2(max(1, context) / seen)
    x[3] = math.log2(max(1, heads))
    x[4] = math.log2(max(1, heads) / max(1, kv_heads))
    x[5] = size
    x[6] = 1.0 if window > 0 else 0.0
    x[7] = math.log2(max(out[9], 1e-6))
    x[8] = math.ceil(out[9]) / out[9] if out[9] > 1.0 else 1.0
    x[9] = out[10]
    x[10] = out[3] / time
    x[11] = out[8] / time
    x[12] = math.log2(max(out[6], 1e-30) / max(out[7], 1e-30))
    x[13] = out[11]
    x[14] = math.log2(max(out[5], 1.0) / max(cache, 1.0))
    x[15] = math.log2(time / max(out[3], 1e-30))


@compiled
def prefill_features(
    batch: Ints,
    query: Ints,
    context: Ints,
    heads: Ints,
    kv_heads: Ints,
    key_size: Ints,
    value_size: Ints,
    window: Ints,
    causal: bool,
    machine: Floats,
    constants: Floats,
    answer: Floats2,
) -> Floats2:
    """``prefill_row`` for every element; ``answer`` takes the six rows."""
    x: Floats2 = np.empty((batch.size, 16))
    out: Floats = np.empty(TERMS)
    for i in range(batch.size):
        prefill_one(
            batch[i],
            query[i],
            context[i],
            heads[i],
            kv_heads[i],
            key_size[i],
            value_size[i],
            window[i],
            causal,
            machine,
            constants,
            out,
        )
        put(out, answer, i)
        prefill_row(
            batch[i], query[i], context[i], heads[i], kv_heads[i], key_size[i], window[i], machine[4], out, x[i]
        )
    return x


@compiled
def prefill_features_scalar(
    batch: int,
    query: int,
    context: int,
    heads: int,
    kv_heads: int,
    key_size: int,
    value_size: int,
    window: int,
    causal: bool,
    machine: Floats,
    constants: Floats,
    out: Floats,
) -> Floats2:
    """``prefill_row`` for plain numbers; ``out`` takes the answer's rows."""
    x: Floats2 = np.empty((1, 16))
    prefill_one(batch, query, context, heads, kv_heads, key_size, value_size, window, causal, machine, constants, out)
    prefill_row(batch, query, context, heads, kv_heads, key_size, window, machine[4], out, x[0])
    return x


@compiled
def decode_features(
    batch: Ints,
    context: Ints,
    heads: Ints,
    kv_heads: Ints,
    size: Ints,
    window: Ints,
    query: Ints,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
    answer: Floats2,
) -> Floats2:
    """``decode_row`` for every element; ``answer`` takes the six rows."""
    x: Floats2 = np.empty((batch.size, 16))
    out: Floats = np.empty(TERMS)
    for i in range(batch.size):
        decode_one(
            batch[i], context[i], heads[i], kv_heads[i], size[i], window[i], query[i], is_cold, machine, constants, out
        )
        put(out, answer, i)
        decode_row(batch[i], context[i], heads[i], kv_heads[i], size[i], window[i], query[i], machine[3], out, x[i])
    return x


@compiled
def decode_features_scalar(
    batch: int,
    context: int,
    heads: int,
    kv_heads: int,
    size: int,
    window: int,
    query: int,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
    out: Floats,
) -> Floats2:
    """``decode_row`` for plain numbers; ``out`` takes the answer's rows."""
    x: Floats2 = np.empty((1, 16))
    decode_one(batch, context, heads, kv_heads, size, window, query, is_cold, machine, constants, out)
    decode_row(batch, context, heads, kv_heads, size, window, query, machine[3], out, x[0])
    return x
