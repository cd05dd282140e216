"""Latent attention on flat arrays: one decode step over shared latents, and the products that absorb projections.

Every function writes time, bare compute roof, bare memory roof, launch, flops and bytes; formulas in
docs/models/attention.md. ``decode_one`` writes the terms that met in the time behind them.
"""

import math

import numpy as np

from orrery.base.compiled import Floats, Floats2, Ints, compiled
from orrery.kernels.attention._kernel import put, together

TERMS = 11
"""Rows that one decode step's answer takes: the six, then reading, moving, entering, columns a unit, and splits."""

DECODE_FEATURES = (
    "log_batch",
    "log_context",
    "log_heads",
    "log_query",
    "log_columns_ratio",
    "wave_rest",
    "num_splits",
    "launch_frac",
    "entry_frac",
    "log_reading_ratio",
    "log_cache_ratio",
    "log_launch_ratio",
)


def decode_one(
    batch: int,
    context: int,
    heads: int,
    size: int,
    value_size: int,
    query: int,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
    out: Floats,
) -> None:
    """All heads of a sequence share one latent a token; blocks of query rows stream it, splitting the context."""
    peak, bandwidth, units, cache, element, kv_element = machine
    launch, c_memory, c_feed, c_product, c_start, again, c_split, c_cache, c_rows = constants[:9]
    row_tile = constants[9]
    out[:] = 0.0
    if batch <= 0 or heads <= 0 or query <= 0:
        return
    rows = float(heads) * query
    blocks = math.ceil(rows / row_tile)
    columns = batch * blocks
    seen = float(context)
    splits = max(1.0, min(units / columns, seen / c_split))
    keys = max(seen / splits, 16.0)
    token = size * kv_element
    padded = row_tile if blocks > 1 else 16.0 * math.ceil(rows / 16.0)
    if row_tile <= 64.0:
        padded = row_tile
    product = 2.0 * padded * (size + value_size) * units / (c_product * peak)
    per_key = max(token * units / (c_feed * bandwidth), product)
    waves = max(1.0, columns * splits / units)
    waves = 0.5 * (waves + math.ceil(waves))
    beginning = c_start * 1152.0 * units / bandwidth  # c_start latents of 576 in 16 bits, at a unit's share
    reading = waves * (keys * per_key + beginning)
    moved = batch * seen * token + batch * rows * (size + value_size) * element
    hit = min(1.0, max(0.0, 1.5 - moved / (c_cache * cache))) if cache > 0.0 and not is_cold else 0.0
    moving = moved / (c_memory * bandwidth) * (1.0 - 0.7 * hit)
    entering = batch * rows * (size + value_size) * 4.0 / (c_rows * bandwidth)
    context = max(context, query)
    visible = query * (2.0 * context - query + 1.0) / 2.0
    flops = 2.0 * (size + value_size) * heads * batch * visible
    out[0] = launch + together(reading, moving, 3.0) + again * min(1.0, splits - 1.0) + entering
    out[1] = flops / peak
    out[2] = moved / bandwidth
    out[3] = launch
    out[4] = flops
    out[5] = moved
    out[6] = reading
    out[7] = moving
    out[8] = entering
    out[9] = columns / units
    out[10] = splits


@compiled
def decode(
    batch: Ints,
    context: Ints,
    heads: Ints,
    size: Ints,
    value_size: Ints,
    query: Ints,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
) -> Floats2:
    """``decode_one`` for every element."""
    answer: Floats2 = np.empty((6, batch.size))
    out: Floats = np.empty(TERMS)
    for i in range(batch.size):
        decode_one(batch[i], context[i], heads[i], size[i], value_size[i], query[i], is_cold, machine, constants, out)
        put(out, answer, i)
    return answer


@compiled
def decode_scalar(
    batch: int,
    context: int,
    heads: int,
    size: int,
    value_size: int,
    query: int,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
) -> Floats:
    """``decode_one`` for plain numbers."""
    out: Floats = np.empty(TERMS)
    decode_one(batch, context, heads, size, value_size, query, is_cold, machine, constants, out)
    return out


def decode_row(batch: int, context: int, heads: int, query: int, cache: float, out: Floats, x: Floats) -> None:
    """Features of a decode step for a learned correction: ratios and logs, no plain seconds. In ``DECODE_FEATURES``.

    A step of nothing takes no time, and its features do not matter.
    """
    time = max(out[0], 1e-30)
    x[0] = math.log2(max(1, batch))
    x[1] = math.log2(max(1, context))
    x[2] = math.log2(max(1, heads))
    x[3] = math.log2(max(1, query))
    x[4] = math.log2(max(out[9], 1e-6))
    x[5] = math.ceil(out[9]) / out[9] if out[9] > 1.0 else 1.0
    x[6] = out[10]
    x[7] = out[3] / time
    x[8] = out[8] / time
    x[9] = math.log2(max(out[6], 1e-30) / max(out[7], 1e-30))
    x[10] = math.log2(max(out[5], 1.0) / max(cache, 1.0))
    x[11] = math.log2(time / max(out[3], 1e-30))


@compiled
def decode_features(
    batch: Ints,
    context: Ints,
    heads: Ints,
    size: Ints,
    value_size: Ints,
    query: Ints,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
    answer: Floats2,
) -> Floats2:
    """``decode_row`` for every element; ``answer`` takes the six rows."""
    x: Floats2 = np.empty((batch.size, 12))
    out: Floats = np.empty(TERMS)
    for i in range(batch.size):
        decode_one(batch[i], context[i], heads[i], size[i], value_size[i], query[i], is_cold, machine, constants, out)
        put(out, answer, i)
        decode_row(batch[i], context[i], heads[i], query[i], machine[3], out, x[i])
    return x


@compiled
def decode_features_scalar(
    batch: int,
    context: int,
    heads: int,
    size: int,
    value_size: int,
    query: int,
    is_cold: bool,
    machine: Floats,
    constants: Floats,
    out: Floats,
) -> Floats2:
    """``decode_row`` for plain numbers; ``out`` takes the answer's rows."""
    x: Floats2 = np.empty((1, 12))
    decode_one(batch, context, heads, size, value_size, query, is_cold, machine, constants, out)
    decode_row(batch, context, heads, query, machine[3], out, x[0])
    return x


def absorb_one(
    m: int, n: int, k: int, heads: int, is_cold: bool, machine: Floats, constants: Floats, out: Floats
) -> None:
    """``heads`` products of (m, k) by (k, n): tiles over the units, a memory floor, a pass to convert.

    Tiles are 128 x 128, halved (down to 32) as long as there are fewer than units.
    """
    peak, bandwidth, units, cache, element = machine
    launch, c_product, c_memory, c_depth, c_cache, c_entry, enters = constants
    for i in range(6):
        out[i] = 0.0
    if m <= 0 or heads <= 0:
        return
    tile = 128.0
    tiles = math.ceil(m / tile) * math.ceil(n / tile) * heads
    while tile > 32.0 and tiles < units:
        tile *= 0.5
        tiles = math.ceil(m / tile) * math.ceil(n / tile) * heads
    rows = min(tile, 16.0 * math.ceil(m / 16.0))
    waves = max(1.0, tiles / units)
    waves = 0.5 * (waves + math.ceil(waves))
    computing = waves * 2.0 * rows * tile * (k + c_depth) * units / (c_product * peak)
    moved = heads * ((float(m) * k + float(k) * n) * element + float(m) * n * 2.0)
    hit = min(1.0, max(0.0, 1.5 - moved / (c_cache * cache))) if cache > 0.0 and not is_cold else 0.0
    moving = moved / (c_memory * bandwidth) * (1.0 - 0.7 * hit)
    time = launch + together(computing, moving, 3.0)
    if enters > 0.0:
        passed = float(m) * k if enters < 2.0 else float(k) * n
        time += heads * passed * 3.0 / (c_entry * bandwidth)
    out[0] = time
    out[4] = 2.0 * heads * float(m) * n * k
    out[1] = out[4] / peak
    out[2] = moved / bandwidth
    out[3] = launch
    out[5] = moved


@compiled
def absorb(m: Ints, n: Ints, k: Ints, heads: Ints, is_cold: bool, machine: Floats, constants: Floats) -> Floats2:
    """``absorb_one`` for every element."""
    answer: Floats2 = np.empty((6, m.size))
    out: Floats = np.empty(6)
    for i in range(m.size):
        absorb_one(m[i], n[i], k[i], heads[i], is_cold, machine, constants, out)
        put(out, answer, i)
    return answer


@compiled
def absorb_scalar(m: int, n: int, k: int, heads: int, is_cold: bool, machine: Floats, constants: Floats) -> Floats:
    """``absorb_one`` for plain numbers."""
    out: Floats = np.empty(6)
    absorb_one(m, n, k, heads, is_cold, machine, constants, out)
    return out
