# pyright: basic
"""The inner loop of the GEMM rule: the best tile and split for every shape, and what it costs.

One product m x n x k costs the launch, then the best over tiles (a, b) and splits s of k of

    max(mma, feed, dram) + overlap * (their sum - their max)  [+ split + partial sums]

    waves = ctas / S, pulled towards the next whole number by ``wave``;  depth = k / s + fill
    mma   = waves 2 a b depth S / (peak F)
    feed  = waves max((a ba + b bw) depth S / (feed W),  depth step,  b depth S / (dequantise V))
    dram  = bytes that miss the last-level cache / (bandwidth W)

Few rows may instead take a matrix-vector kernel (no tiles). Quantising the input is a kernel of its own in front.
``CONSTANTS`` and ``MACHINE`` name the entries of the two vectors; rule.py fills them.
"""

import numpy as np
from numba import njit

CONSTANTS = (
    "peak_frac", "bandwidth_frac", "overhead_s", "feed_ratio", "overlap_frac", "step_s", "split_s", "fill_elements",
    "wave_frac", "cache_ratio", "cache_gain_frac", "dequantise_ratio", "max_splits",
    "gemv_rows", "gemv_s", "gemv_ratio", "quantise_s", "quantise_frac",
)  # fmt: skip
MACHINE = ("units", "flops", "vector", "bandwidth", "cache", "a_bytes", "b_bytes", "c_bytes", "input_bytes")

TIME, COMPUTE, MEMORY, OVERHEAD, FLOPS, BYTES, FILL, WAVES, CHOICE = range(9)
COLUMNS = 9

COPIES = 5.0  # weight matrices that the measured loops take turns with; what fits the cache five times stays there


@njit(cache=True)
def _one(m, n, k, batch, constants, machine, tiles, is_cold, quantises, out):
    """Fill ``out`` (COLUMNS long) for one shape."""
    peak, width, overhead, feed, overlap, step, split_s, fill, wave = (
        constants[0], constants[1], constants[2], constants[3], constants[4], constants[5], constants[6],
        constants[7], constants[8],
    )  # fmt: skip
    cache, gain, dequantise, max_splits = constants[9], constants[10], constants[11], constants[12]
    gemv_rows, gemv_s, gemv, quantise_s, quantise = (
        constants[13], constants[14], constants[15], constants[16], constants[17],
    )  # fmt: skip
    units, flops, vector, bandwidth, llc = machine[0], machine[1], machine[2], machine[3], machine[4]
    ba, bb, bc, bi = machine[5], machine[6], machine[7], machine[8]

    a_bytes, b_bytes, c_bytes = batch * m * k * ba, batch * k * n * bb, batch * m * n * bc
    work = 2.0 * batch * m * n * k
    moved = a_bytes + b_bytes + c_bytes
    out[FLOPS] = work
    out[BYTES] = moved
    out[COMPUTE] = work / flops
    out[MEMORY] = moved / bandwidth
    if moved <= 0.0 or work <= 0.0:
        for column in range(COLUMNS):
            out[column] = 0.0
        return
    miss = 1.0
    if not is_cold:
        miss -= gain * min(1.0, max(0.0, 2.0 - 2.0 * (COPIES * b_bytes + a_bytes + c_bytes) / (cache * llc)))
    reread = 0.0
    smaller = min(a_bytes, b_bytes) / batch
    if smaller > cache * llc:
        square = np.sqrt(units * 16384.0)
        reread = max(0.0, batch * m * n / square * k * (ba + bb) - a_bytes - b_bytes)
        reread *= min(1.0, smaller / (cache * llc) - 1.0)
    dram = (moved * miss + reread) / (width * bandwidth)

    best = 1e300
    for t in range(tiles.shape[0]):
        tm, tn = tiles[t, 0], tiles[t, 1]
        ctas = batch * np.ceil(m / tm) * np.ceil(n / tn)
        mma_rate = 2.0 * tm * tn * units / (peak * flops)
        feed_rate = max((tm * ba + tn * bb) * units / (feed * bandwidth), max(step, tn * units / (dequantise * vector)))
        s = 1.0
        while s <= max_splits and (s == 1.0 or k >= 64.0 * s):
            waves = ctas * s / units
            whole = np.ceil(waves)
            waves = max(1.0, waves)
            waves += wave * (whole - waves)
            depth = k / s + fill
            mma, load = waves * mma_rate * depth, waves * feed_rate * depth
            top = max(mma, max(load, dram))
            time = top + overlap * (mma + load + dram - top)
            if s > 1.0:
                time += split_s + 8.0 * s * batch * m * n / (3.0 * bandwidth)
            if time < best:
                best = time
                out[FILL] = (m / tm / np.ceil(m / tm)) * (n / tn / np.ceil(n / tn))
                out[WAVES] = ctas * s / units
                out[CHOICE] = 100.0 * t + s
            s *= 2.0
    best += overhead
    launch = overhead
    if m <= gemv_rows:
        time = gemv_s + max(moved * miss / (width * bandwidth), 0.5 * work / (gemv * vector))
        if time < best:
            best = time
            launch = gemv_s
            out[CHOICE] = -1.0
    if quantises:
        best += quantise_s + batch * m * k * (2.0 + bi) / (quantise * bandwidth)
        launch += quantise_s
    out[TIME] = best
    out[OVERHEAD] = launch


@njit(cache=True)
def many(m, n, k, batch, constants, machine, tiles, is_cold, quantises, out):
    """One row of ``out`` for every shape."""
    for i in range(m.size):
        _one(m[i], n[i], k[i], batch[i], constants, machine, tiles, is_cold, quantises, out[i])


@njit(cache=True)
def scalar(m, n, k, batch, constants, machine, tiles, is_cold, quantises):
    """The row for one shape, without arrays on the way in."""
    out = np.zeros(COLUMNS)
    _one(m, n, k, batch, constants, machine, tiles, is_cold, quantises, out)
    return out
