"""Attention on flat arrays: one prompt or chunk (``prefill``), one decode step (``decode``).

``machine`` and ``constants`` are the vectors that ``prefill.py`` and ``decode.py`` lay out; the docs page derives both.
Every function writes time, bare compute roof, bare memory roof, launch, flops and bytes.
"""

import math

import numpy as np

from orrery.base.compiled import Floats, Floats2, Ints, compiled

TERMS = 12
"""Rows that one kernel's answer takes: time, two roofs, launch, flops, bytes, then the terms that met in the time."""

PRODUCT_SHARE = 0.3
"""Share of the matrix peak in a product of 16 rows. No row tells it apart from the feed; fits left it near 0.3."""


def together(one: float, other: float, power: float) -> float:
    """Two things at once: (one^p + other^p)^(1/p), written so that it keeps its bits when the unit changes."""
    more, less = max(one, other), min(one, other)
    if more <= 0.0:
        return 0.0
    return more * (1.0 + (less / more) ** power) ** (1.0 / power)


def put(out: Floats, answer: Floats2, column: int) -> None:
    """The first rows of one kernel's answer, as a column."""
    for row in range(answer.shape[0]):
        answer[row, column] = out[row]


def visible(query: int, context: int, window: int, causal: bool) -> float:
    """Key positions that all queries of one head see: whole rows, minus the causal corner and the window's past."""
    if not causal:
        return float(query) * context
    full = query * (2.0 * context - query + 1.0) / 2.0
    if window > 0 and context > window:
        cut = min(query, context - window)  # queries whose window leaves something out
        full -= cut * (2.0 * (context - window) - cut + 1.0) / 2.0
    return full


def prefill_one(
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
) -> None:
    """Query tiles spread over the compute units; see docs/models/attention.md, "Prefill"."""
    peak, bandwidth, units, exps, cache, element, kv_element = machine[:7]
    launch, e64, e128, e192, e256, c_memory, c_rows, c_tile, c_edge, c_cache = constants[:10]
    tile, step, packs, granule = constants[10], constants[11], constants[12], constants[13]
    out[:] = 0.0
    if batch <= 0 or query <= 0 or heads <= 0:
        return
    if value_size <= 0:
        value_size = key_size
    past = max(0.0, float(context - query))
    # --- tiles: `span` tokens of `stacked` query heads each
    stacked = 1.0
    columns = float(heads)
    if packs > 0.0 and kv_heads < heads:
        group = heads / kv_heads
        pieces = math.ceil(group / tile)
        stacked = math.ceil(group / pieces)
        columns = kv_heads * pieces
    span = max(1.0, math.floor(tile / stacked))
    tiles = math.ceil(query / span)
    # --- key blocks: sum over tiles, and the longest tile
    last = math.ceil(context / step)
    if causal:
        common = 1.0
        a, b = int(span), int(step)
        while b:
            a, b = b, a % b
        common = a / step
        before = math.ceil(past / step)
        m = tiles - 1.0
        blocks = m * (before + max(0.0, 0.5 * (1.0 - common))) + span / step * m * (m + 1.0) / 2.0
    else:
        blocks = (tiles - 1.0) * last
    longest = last
    rows = query - (tiles - 1.0) * span
    short = min(1.0, math.ceil(rows * stacked / granule) * granule / tile)
    if window > 0 and causal:
        first = max(0.0, math.floor((window - 1.0 - past) / span) + 1.0)  # first tile whose window leaves something out
        cut = max(0.0, tiles - 1.0 - first)
        skip = math.floor((past - window + 1.0) / step)
        blocks -= cut * skip + span / step * (tiles - 2.0 + first) * cut / 2.0 - c_edge * cut
        oldest = past + (tiles - 1.0) * span - window + 1.0
        if oldest > 0.0:
            longest = last - math.floor(oldest / step) + c_edge
    blocks = max(blocks, tiles - 1.0) + longest * short
    if tiles < 2.0:
        longest *= short
    # --- one block: matrix units and exponentials, overlapped
    size = 0.5 * (key_size + value_size)
    if size <= 128.0:
        share = e64 * (e128 / e64) ** math.log2(max(size, 64.0) / 64.0)
        share *= min(1.0, size / 32.0)
    elif size <= 192.0:
        share = e128 * (e192 / e128) ** ((size - 128.0) / 64.0)
    else:
        share = e192 * (e256 / e192) ** (min(size - 192.0, 64.0) / 64.0)
    product = 4.0 * tile * step * size * units / (peak * share)
    softmax = tile * step * units / exps
    block = together(product, softmax, 3.0)
    extra = c_tile * 4.0 * 128.0 * 128.0 * 128.0 * units / peak
    # --- tiles over units
    ctas = batch * columns * tiles
    waves = ctas / units
    fluid = (blocks * batch * columns * block + ctas * extra) / units
    if waves > 1.0:
        fluid *= 0.5 + 0.5 * math.ceil(waves) / waves
    alone = longest * block + extra
    computing = together(fluid, alone, 4.0)
    # --- memory
    seen = float(context)
    if window > 0 and causal:
        seen = min(seen, window + query - 1.0)
    moved = batch * query * heads * (key_size + value_size) * element
    moved += batch * seen * kv_heads * (key_size + value_size) * kv_element
    hit = min(1.0, max(0.0, 1.5 - moved / (c_cache * cache))) if cache > 0.0 else 0.0
    easier = 1.0 - 0.7 * hit
    moving = moved / (c_memory * bandwidth) * easier
    entering = batch * query * (heads * key_size + kv_heads * (key_size + value_size)) * 4.0
    flops = 2.0 * (key_size + value_size) * heads * batch * visible(query, context, window, causal)
    before = entering / (c_rows * bandwidth) * easier
    out[0] = launch + together(computing, moving, 3.0) + before
    out[1] = flops / peak
    out[2] = moved / bandwidth
    out[3] = launch
    out[4] = flops
    out[5] = moved
    out[6] = computing
    out[7] = moving
    out[8] = before
    out[9] = waves
    out[10] = alone
    out[11] = longest


@compiled
def prefill(
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
) -> Floats2:
    """``prefill_one`` for every element; rows of the answer as in ``prefill_one``."""
    answer: Floats2 = np.empty((6, batch.size))
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
    return answer


@compiled
def prefill_scalar(
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
) -> Floats:
    """``prefill_one`` for plain numbers."""
    out: Floats = np.empty(TERMS)
    prefill_one(batch, query, context, heads, kv_heads, key_size, value_size, window, causal, machine, constants, out)
    return out


def decode_one(
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
) -> None:
    """A stream of keys and values through split readers; see docs/models/attention.md, "Decode"."""
    peak, bandwidth, units, cache, element, kv_element = machine[:6]
    launch, c_memory, c_feed, c_start, again, c_chunk, c_cache, c_head, c_head_start, c_rows = constants[:10]
    widest, lonely, copies, apart, blind = constants[10:15]
    out[:] = 0.0
    if batch <= 0 or heads <= 0 or query <= 0:
        return
    group = heads / kv_heads
    seen = float(context)
    if window > 0:
        seen = min(seen, window + query - 1.0)
    per_head = (widest > 0.0 and group > widest) or (lonely > 0.0 and group == 1.0)
    pair = 2.0 * size * kv_element  # bytes of one token's key and value in one head
    # --- readers
    columns = batch * (heads if per_head else kv_heads)
    room = max(1.0, math.floor(units / columns))
    splits = max(1.0, min(room, seen / c_chunk))
    laid = max(1.0, min(room, context / c_chunk)) if blind > 0.0 else splits
    keys = max(seen / splits, 16.0)
    if per_head:
        per_key = pair * units / (c_head * bandwidth) * query
    else:
        rows = 16.0 * math.ceil(group * query / 16.0)
        per_key = max(pair * units / (c_feed * bandwidth), rows * 4.0 * size * units / (PRODUCT_SHARE * peak))
    waves = max(1.0, columns * splits / units)
    waves = 0.5 * (waves + math.ceil(waves))
    start = c_head_start if per_head else c_start
    beginning = start * 512.0 * units / bandwidth  # keys and values of size 128 in 16 bits, at a unit's share
    reading = waves * (keys * per_key + beginning)
    # --- memory
    moved = batch * kv_heads * seen * pair + batch * query * 2.0 * heads * size * element
    hit = min(1.0, max(0.0, 1.5 - moved / (c_cache * cache))) if cache > 0.0 and not is_cold else 0.0
    moving = moved / (c_memory * bandwidth) * (1.0 - 0.7 * hit)
    time = launch + together(reading, moving, 3.0) + again * min(1.0, laid - 1.0)
    before = batch * query * (heads + 2.0 * kv_heads) * size * 4.0 / (c_rows * bandwidth)
    time += before
    if (copies > 0.0 and group > 1.0 and kv_heads > 1) or (apart > 0.0 and per_head):
        time += again
    flops = 4.0 * size * heads * batch * visible(query, max(query, context), window, True)
    out[0] = time
    out[1] = flops / peak
    out[2] = moved / bandwidth
    out[3] = launch
    out[4] = flops
    out[5] = moved
    out[6] = reading
    out[7] = moving
    out[8] = before
    out[9] = columns / units
    out[10] = splits
    out[11] = 1.0 if per_head else 0.0


@compiled
def decode(
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
) -> Floats2:
    """``decode_one`` for every element; rows of the answer as in ``decode_one``."""
    answer: Floats2 = np.empty((6, batch.size))
    out: Floats = np.empty(TERMS)
    for i in range(batch.size):
        decode_one(
            batch[i],
            context[i],
            heads[i],
            kv_heads[i],
            size[i],
            window[i],
            query[i],
            is_cold,
            machine,
            constants,
            out,
        )
        put(out, answer, i)
    return answer


@compiled
def decode_scalar(
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
) -> Floats:
    """``decode_one`` for plain numbers."""
    out: Floats = np.empty(TERMS)
    decode_one(batch, context, heads, kv_heads, size, window, query, is_cold, machine, constants, out)
    return out
