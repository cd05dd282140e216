"""The inner loop of the MoE rule: what lands on the busiest rank, and what its two grouped products cost.

A device holds ``experts = num_experts / ep`` experts with ``ffn = ffn_size / tp``. Of ``tokens * topk`` assignments
``rows`` land on it, on ``hit`` distinct experts; tiles of ``a`` rows number ``sum over experts ceil(load / a)``.

    time  = overhead + expert experts + row bytes / (row W) + token bytes / (token W)
            + (1 + uneven) (products^1.5 + dram^1.5)^(2/3)
    products = sum over both of waves 2 a 128 (k + fill) S / (peak F),   waves = max(1, tiles ceil(n / 128) / S)
    dram     = bytes of the experts hit / (bandwidth W), halved at most where they fit the last-level cache

Row bytes pass once an assignment (gather, activation, combine), token bytes once a token (quantise, result).
``uneven``: what loads that differ cost beyond their tiles. The tile height is the best one, or (``sees_all``) the one
that fits if every assignment landed on this rank; with ``runs_all`` a token's other experts are computed for nothing;
with ``passes_all`` gather, activation and combine pass over the rows of all assignments, whichever rank they belong to.
``CONSTANTS`` and ``MACHINE`` name the entries of the two vectors; rule.py fills them.
"""

import math

import numpy as np

from orrery.base.compiled import Floats, Floats2, Floats3, Ints, compiled

CONSTANTS = (
    "overhead_s",
    "plain_overhead_s",
    "expert_s",
    "peak_frac",
    "bandwidth_frac",
    "row_ratio",
    "token_ratio",
    "fill_elements",
    "cache_ratio",
    "uneven_frac",
    "sees_all",
    "runs_all",
    "passes_all",
)
MACHINE = ("units", "flops", "bandwidth", "cache", "activation_bytes", "weight_bytes")

TIME, COMPUTE, MEMORY, OVERHEAD, FLOPS, BYTES, HIT, ROWS = range(8)
COLUMNS = 8

FEATURES = (
    "log2_tokens",
    "log2_hidden",
    "log2_ffn",
    "log2_experts",
    "experts_per_token",
    "log2_ep",
    "gated",
    "log2_seen",
    "log2_rows",
    "log2_hit",
    "log2_load",
    "hit_frac",
    "products_frac",
    "dram_frac",
    "elementwise_frac",
    "overhead_frac",
    "is_drawn",
)
"""Features of a block for a learned correction: logs of counts and shares of the time, no plain seconds."""

SIZES = ("tokens", "hidden_size", "ffn_size", "num_experts")
"""Sizes beyond whose measured range a learned correction fades."""

NUM_HEIGHTS = 6  # tiles of 8, 16, 32, 64, 128, 256 rows
WIDTH = 128.0  # columns of a tile: what the measured kernels mostly use, and what half and double fit no better
GRID_PER_OCTAVE = 2  # how densely a load table is sampled in tokens
CACHE_GAIN_FRAC = 0.5  # the loops repeat the same experts, but activations pass through the same cache
SIXTEEN_BIT_BYTES = 2.0


def _overlapped(a: float, b: float) -> float:
    """(a^1.5 + b^1.5)^(2/3): two things at once that get in each other's way; exact under a change of unit."""
    high, low = max(a, b), min(a, b)
    if high <= 0.0:
        return 0.0
    share = low / high
    both = 1.0 + share * math.sqrt(share)
    return high * math.cbrt(both * both)


def _dealt(tokens: float, experts: float, topk: float, ep: float, load: Floats) -> None:
    """Loads when assignments are dealt out evenly; the busiest rank and experts round up."""
    rows = max(1.0, math.ceil(tokens * topk / ep - 1e-9))
    hit = min(experts, rows)
    low = math.floor(rows / hit + 1e-9)
    fuller = rows - low * hit
    load[0], load[1] = rows, hit
    height = 8.0
    for i in range(NUM_HEIGHTS):
        load[2 + i] = fuller * math.ceil((low + 1.0) / height) + (hit - fuller) * math.ceil(low / height)
        height *= 2.0


def _drawn(tokens: float, table: Floats2, load: Floats) -> None:
    """Loads read from a table of draws, linear in tokens between its points and beyond the last."""
    last = table.shape[0] - 1
    place = GRID_PER_OCTAVE * math.log2(tokens)
    if place >= last:
        grow = tokens / 2.0 ** (last / GRID_PER_OCTAVE)
        for i in range(2 + NUM_HEIGHTS):
            load[i] = table[last, i] * (1.0 if i == 1 else grow)
        return
    below = min(max(int(place), 0), last - 1)
    start = 2.0 ** (below / GRID_PER_OCTAVE)
    share = max(0.0, tokens / start - 1.0) / (2.0 ** (1.0 / GRID_PER_OCTAVE) - 1.0)
    for i in range(2 + NUM_HEIGHTS):
        load[i] = table[below, i] + share * (table[below + 1, i] - table[below, i])


def _products(
    load: Floats,
    height_index: int,
    extra: float,
    hidden: float,
    ffn: float,
    ups: float,
    constants: Floats,
    machine: Floats,
) -> float:
    """Time of the two grouped products with tiles of one height; ``extra`` rows are computed for nothing."""
    peak, fill = constants[3], constants[7]
    units, flops = machine[0], machine[1]
    height = float(8 << height_index)
    tiles = load[2 + height_index] + extra / height
    total = 0.0
    for product in range(2):
        columns = ups * ffn if product == 0 else hidden
        depth = hidden if product == 0 else ffn
        waves = max(1.0, tiles * math.ceil(columns / WIDTH) / units)
        total += waves * 2.0 * height * WIDTH * (depth + fill) * units / (peak * flops)
    return total


def _one(
    tokens: float,
    hidden: float,
    ffn_size: float,
    num_experts: float,
    topk: float,
    tp: float,
    ep: float,
    ups: float,
    table: Floats2,
    constants: Floats,
    machine: Floats,
    load: Floats,
    out: Floats,
) -> None:
    """Fill ``out`` for one block, with the features where it is long enough; an empty ``table`` deals out evenly."""
    if tokens <= 0.0 or topk <= 0.0:
        out[:] = 0.0
        return
    ep = min(ep, num_experts)
    experts, ffn = num_experts / ep, ffn_size / tp
    if table.shape[0] == 0:
        _dealt(tokens, experts, topk, ep, load)
    else:
        _drawn(tokens, table, load)
    rows, hit = load[0], load[1]

    extra = max(0.0, min(tokens, rows) * topk - rows) if constants[11] > 0.0 else 0.0
    if constants[10] > 0.0:
        seen = min(max(tokens * topk / experts, 8.0), 8.0 * 2.0 ** (NUM_HEIGHTS - 1))
        products = _products(
            load, int(np.ceil(math.log2(seen) - 1e-9)) - 3, extra, hidden, ffn, ups, constants, machine
        )
    else:
        products = math.inf
        for i in range(1, NUM_HEIGHTS):
            products = min(products, _products(load, i, extra, hidden, ffn, ups, constants, machine))

    bandwidth, ba, bw = machine[2], machine[4], machine[5]
    weights = hit * (ups + 1.0) * hidden * ffn * bw
    ends = (min(tokens, rows) + tokens) * hidden * SIXTEEN_BIT_BYTES
    passed = tokens * topk if constants[12] > 0.0 else rows
    between = passed * (hidden * (SIXTEEN_BIT_BYTES + 2.0 * ba) + ffn * (ups * SIXTEEN_BIT_BYTES + ba))
    cached_frac = min(1.0, max(0.0, 1.5 - weights / (constants[8] * machine[3])))
    dram = weights * (1.0 - CACHE_GAIN_FRAC * cached_frac) / (constants[4] * bandwidth)
    overhead = (constants[0] if ups > 1.0 else constants[1]) + constants[2] * experts

    out[OVERHEAD] = overhead
    out[FLOPS] = 2.0 * rows * (ups + 1.0) * hidden * ffn
    out[BYTES] = weights + ends
    out[COMPUTE] = out[FLOPS] / machine[1]
    out[MEMORY] = out[BYTES] / bandwidth
    through = tokens * hidden * (2.0 * SIXTEEN_BIT_BYTES + ba)
    elementwise = between / (constants[5] * bandwidth) + through / (constants[6] * bandwidth)
    uneven = 1.0 + constants[9] if table.shape[0] > 0 else 1.0
    out[TIME] = overhead + elementwise + uneven * _overlapped(products, dram)
    out[HIT], out[ROWS] = hit, rows
    if out.size > COLUMNS:
        feature = out[COLUMNS:]
        feature[0], feature[1], feature[2] = math.log2(tokens), math.log2(hidden), math.log2(ffn)
        feature[3], feature[4], feature[5], feature[6] = math.log2(experts), topk, math.log2(ep), ups
        feature[7], feature[8], feature[9] = math.log2(tokens * topk / experts), math.log2(rows), math.log2(hit)
        feature[10], feature[11] = math.log2(rows / hit), hit / experts
        feature[12], feature[13] = products / out[TIME], dram / out[TIME]
        feature[14], feature[15] = elementwise / out[TIME], overhead / out[TIME]
        feature[16] = 1.0 if table.shape[0] > 0 else 0.0


def _inside(size: float, low: float, high: float) -> float:
    """1 within the range, falling to 0 in log size over the next factor of 2 on either side."""
    return max(0.0, 1.0 - max(0.0, max(math.log2(low / size), math.log2(size / high))))


@compiled
def corrected(
    time: float,
    roof: float,
    log: float,
    cap: float,
    tokens: float,
    hidden: float,
    ffn: float,
    experts: float,
    ranges: Floats2,
) -> float:
    """``time`` times exp(``log``), capped, faded beyond the measured ``ranges`` (a line each of SIZES), over a roof."""
    if time <= 0.0:
        return 0.0
    share = _inside(tokens, ranges[0, 0], ranges[0, 1]) * _inside(hidden, ranges[1, 0], ranges[1, 1])
    share *= _inside(ffn, ranges[2, 0], ranges[2, 1]) * _inside(experts, ranges[3, 0], ranges[3, 1])
    return max(time * math.exp(share * min(cap, max(-cap, log))), min(time, roof))


@compiled
def all_corrected(
    time: Floats,
    roof: Floats,
    log: Floats,
    cap: float,
    tokens: Floats,
    hidden: Floats,
    ffn: Floats,
    experts: Floats,
    ranges: Floats2,
) -> None:
    """The same for many, in place."""
    for i in range(time.size):
        time[i] = corrected(time[i], roof[i], log[i], cap, tokens[i], hidden[i], ffn[i], experts[i], ranges)


@compiled
def scalar(
    tokens: float,
    hidden: float,
    ffn: float,
    experts: float,
    topk: float,
    tp: float,
    ep: float,
    ups: float,
    table: Floats2,
    constants: Floats,
    machine: Floats,
) -> Floats:
    """One block; returns the columns and the features."""
    out: Floats = np.empty(COLUMNS + len(FEATURES))
    load: Floats = np.empty(2 + NUM_HEIGHTS)
    _one(tokens, hidden, ffn, experts, topk, tp, ep, ups, table, constants, machine, load, out)
    return out


@compiled
def many(
    tokens: Floats,
    hidden: Floats,
    ffn: Floats,
    experts: Floats,
    topk: Floats,
    tp: Floats,
    ep: Floats,
    ups: float,
    which: Ints,
    tables: Floats3,
    constants: Floats,
    machine: Floats,
    out: Floats2,
) -> None:
    """Many blocks; ``which`` names each one's load table, -1 for dealt evenly."""
    load: Floats = np.empty(2 + NUM_HEIGHTS)
    none = tables[0, :0]
    for i in range(tokens.size):
        table = none if which[i] < 0 else tables[which[i]]
        _one(
            tokens[i],
            hidden[i],
            ffn[i],
            experts[i],
            topk[i],
            tp[i],
            ep[i],
            ups,
            table,
            constants,
            machine,
            load,
            out[i],
        )
