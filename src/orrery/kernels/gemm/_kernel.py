"""The inner loop of the GEMM rule: the best tile and split for every shape, and what it costs.

One product m x n x k costs the launch, then the best over tiles (a, b) and splits s of k of

    max(mma, feed, dram) + overlap * (their sum - their max)  [+ split + partial sums]

    waves = ctas / units, pulled towards the next whole number;  depth = k / s + FILL / ba
    mma   = waves 2 a b depth units / (peak flops)
    feed  = depth max(waves (a ba + b bb) units / (feed bandwidth), waves b units / (dequantise vector),
                      step max(1, waves / slots))
    dram  = bytes that miss the cache / (width bandwidth), and a ramp of at most ``ramp`` seconds

A library that looks only at m takes no tile with fewer rows than min(m, ``min_rows``).
Few rows may instead take a matrix-vector kernel (no tiles). Quantising the input is a kernel of its own in front.
A loop that launches kernels one by one (not cold) never takes less than the host's time for a launch.
``CONSTANTS`` and ``MACHINE`` name the entries of the two vectors; machine.py fills them.
"""

import numpy as np

from orrery.base.compiled import Floats, Floats2, compiled

CONSTANTS = (
    "peak_frac",
    "bandwidth_frac",
    "overhead_s",
    "feed_ratio",
    "overlap_frac",
    "step_s",
    "split_s",
    "ramp_s",
    "reread_ratio",
    "cache_ratio",
    "cache_gain_frac",
    "dequantise_ratio",
    "max_splits",
    "min_rows",
    "gemv_rows",
    "gemv_s",
    "gemv_ratio",
    "quantise_s",
    "quantise_frac",
    "host_s",
)
MACHINE = ("units", "flops", "vector", "bandwidth", "cache", "a_bytes", "b_bytes", "c_bytes", "input_bytes")

TIME, COMPUTE, MEMORY, OVERHEAD, FLOPS, BYTES, MMA, FEED, DRAM, FILLED, WAVES, CHOICE = range(12)
COLUMNS = 12

FEATURES = (
    "log_m",
    "log_n",
    "log_k",
    "log_nk",
    "log_mn",
    "log_mk",
    "log_n_k",
    "mma",
    "feed",
    "dram",
    "overhead",
    "log_waves",
    "wave_loss",
    "filled",
    "tile",
    "splits",
    "cache_load",
    "log_balance",
)

COPIES = 5.0  # weight matrices that the measured loops take turns with; what fits the cache five times stays there
FILL = 256.0  # bytes of k that a tile waits for before its first product: a pipeline of four stages of 64
WAVE = 0.3  # how far a partial last wave counts as a whole one; the fits cannot tell 0 from 1 once tiles are chosen
ACCUMULATOR = 2.0 * 128 * 128  # output elements that a unit holds at once: half of 256 KB of registers, in FP32
RASTER = 128.0 * 128  # output elements of the tile that sets how often an operand too big for the cache is re-read
SHORTEST_SPLIT = 64.0  # elements of k below which no library splits


def _dram_s(
    m: float, n: float, k: float, batch: float, constants: Floats, machine: Floats, is_cold: bool
) -> tuple[float, float]:
    """Seconds that the memory needs for the bytes that miss the cache, with its ramp, and without re-reads or ramp."""
    width, ramp, again, ratio, gain = constants[1], constants[7], constants[8], constants[9], constants[10]
    units, bandwidth, cache, ba, bb, bc = machine[0], machine[3], machine[4], machine[5], machine[6], machine[7]
    a_bytes, b_bytes, c_bytes = batch * m * k * ba, batch * k * n * bb, batch * m * n * bc
    cache *= ratio
    miss = 1.0
    if not is_cold:
        miss -= gain * min(1.0, max(0.0, 2.0 - 2.0 * (COPIES * b_bytes + a_bytes + c_bytes) / cache))
    streamed = miss * (a_bytes + b_bytes + c_bytes)
    smaller = min(a_bytes, b_bytes) / batch
    reread = 0.0
    if smaller > cache:
        reread = batch * m * n * k * (ba + bb) / np.sqrt(units * RASTER) - a_bytes - b_bytes
        reread = again * max(0.0, reread) * min(1.0, smaller / cache - 1.0)
    bare = streamed / (width * bandwidth)
    dram = (streamed + reread) / (width * bandwidth)
    return dram + ramp * dram / (dram + ramp), bare


def _rates(constants: Floats, machine: Floats, tiles: Floats2) -> Floats2:
    """Seconds of every tile: per wave and unit of depth for products and for feeding, and per wave for a step."""
    peak, feed, step, dequantise = constants[0], constants[3], constants[5], constants[11]
    units, flops, vector, bandwidth, ba, bb = machine[0], machine[1], machine[2], machine[3], machine[5], machine[6]
    out: Floats2 = np.empty((tiles.shape[0], 3))
    for t in range(tiles.shape[0]):
        tm, tn = tiles[t, 0], tiles[t, 1]
        out[t, 0] = 2.0 * tm * tn * units / (peak * flops)
        out[t, 1] = max((tm * ba + tn * bb) * units / (feed * bandwidth), tn * units / (dequantise * vector))
        out[t, 2] = step / max(1.0, min(8.0, ACCUMULATOR / (tm * tn)))
    return out


def _one(
    m: float,
    n: float,
    k: float,
    batch: float,
    constants: Floats,
    machine: Floats,
    tiles: Floats2,
    rates: Floats2,
    is_cold: bool,
    quantises: bool,
    out: Floats,
) -> None:
    """Fill ``out`` (COLUMNS long) for one shape; ``rates`` are the tiles'."""
    overhead, overlap, step, split_s = constants[2], constants[4], constants[5], constants[6]
    max_splits, min_rows = constants[12], constants[13]
    gemv_rows, gemv_s, gemv, quantise_s, quantise = (
        constants[14],
        constants[15],
        constants[16],
        constants[17],
        constants[18],
    )
    units, flops, vector, bandwidth = machine[0], machine[1], machine[2], machine[3]
    ba, bb, bc, bi = machine[5], machine[6], machine[7], machine[8]
    outputs = batch * m * n
    work = 2.0 * outputs * k
    if work <= 0.0:
        for column in range(COLUMNS):
            out[column] = 0.0
        return
    moved = batch * k * (m * ba + n * bb) + outputs * bc
    dram, bare = _dram_s(m, n, k, batch, constants, machine, is_cold)

    best, mma_s, feed_s, filled, spread, choice = 1e300, 0.0, 0.0, 0.0, 0.0, 0.0
    partial_s, tail = 8.0 * outputs / (3.0 * bandwidth), FILL / ba
    for t in range(tiles.shape[0]):
        tm, tn = tiles[t, 0], tiles[t, 1]
        if tm < min(m, min_rows):
            continue
        blocks = np.ceil(m / tm) * np.ceil(n / tn)
        once = batch * blocks / units
        s, inverse = 1.0, 1.0
        while s <= max_splits and (s == 1.0 or k >= SHORTEST_SPLIT * s):
            fluid = once * s
            waves = max(1.0, fluid)
            waves += WAVE * (np.ceil(fluid) - waves)
            depth = k * inverse + tail
            mma = waves * rates[t, 0] * depth
            load = depth * max(waves * rates[t, 1], max(step, waves * rates[t, 2]))
            top = max(mma, max(load, dram))
            time = top + overlap * (mma + load + dram - top)
            if s > 1.0:
                time += split_s + s * partial_s
            if time < best:
                best, mma_s, feed_s = time, mma, load
                filled, spread, choice = m * n / (blocks * tm * tn), fluid, 100.0 * t + s
            s *= 2.0
            inverse *= 0.5
    best += overhead
    launch = overhead
    if m <= gemv_rows:
        products = 0.5 * work / (gemv * vector)
        time = gemv_s + max(bare, products)
        if time < best:
            best, launch = time, gemv_s
            mma_s, feed_s, filled, spread, choice = products, 0.0, 1.0, 0.0, -1.0
    if quantises:
        best += quantise_s + batch * m * k * (2.0 + bi) / (quantise * bandwidth)
        launch += quantise_s
    if not is_cold and best < constants[19]:
        best = constants[19]
    out[TIME], out[COMPUTE], out[MEMORY], out[OVERHEAD] = best, work / flops, moved / bandwidth, launch
    out[FLOPS], out[BYTES], out[DRAM] = work, moved, dram
    out[MMA], out[FEED], out[FILLED], out[WAVES], out[CHOICE] = mma_s, feed_s, filled, spread, choice


@compiled
def many(
    m: Floats,
    n: Floats,
    k: Floats,
    batch: Floats,
    constants: Floats,
    machine: Floats,
    tiles: Floats2,
    is_cold: bool,
    quantises: bool,
    out: Floats2,
) -> None:
    """One row of ``out`` for every shape."""
    rates: Floats2 = _rates(constants, machine, tiles)
    for i in range(m.size):
        _one(m[i], n[i], k[i], batch[i], constants, machine, tiles, rates, is_cold, quantises, out[i])


@compiled
def scalar(
    m: float,
    n: float,
    k: float,
    batch: float,
    constants: Floats,
    machine: Floats,
    tiles: Floats2,
    is_cold: bool,
    quantises: bool,
) -> Floats:
    """The row for one shape, without arrays on the way in."""
    out: Floats = np.zeros(COLUMNS)
    rates: Floats2 = _rates(constants, machine, tiles)
    _one(m, n, k, batch, constants, machine, tiles, rates, is_cold, quantises, out)
    return out


@compiled
def features(m: Floats, n: Floats, k: Floats, rows: Floats2, machine: Floats, x: Floats2) -> None:
    """Features for the learned correction, as ``FEATURES`` names them: sizes, and the terms as shares of the time."""
    balance = np.log2(machine[1] / machine[3])
    for i in range(m.size):
        time = rows[i, TIME]
        if time <= 0.0:
            x[i] = 0.0
            continue
        lm, ln, lk, scale = np.log2(m[i]), np.log2(n[i]), np.log2(k[i]), 1.0 / time
        waves = rows[i, WAVES]
        x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4], x[i, 5], x[i, 6] = lm, ln, lk, ln + lk, lm + ln, lm + lk, ln - lk
        x[i, 7] = rows[i, MMA] * scale
        x[i, 8] = rows[i, FEED] * scale
        x[i, 9] = rows[i, DRAM] * scale
        x[i, 10] = rows[i, OVERHEAD] * scale
        x[i, 11] = np.log2(waves) if waves > 0.0 else -1.0
        x[i, 12] = np.ceil(waves) / waves if waves > 0.0 else 0.0
        x[i, 13] = rows[i, FILLED]
        x[i, 14] = np.floor(rows[i, CHOICE] / 100.0)
        x[i, 15] = rows[i, CHOICE] - 100.0 * x[i, 14]
        x[i, 16] = rows[i, BYTES] / machine[4]
        x[i, 17] = balance
