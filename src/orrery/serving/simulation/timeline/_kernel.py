# pyright: reportArgumentType=false
"""The timeline of a run: what comes, waits, runs and is held, added up in bins of equal width."""

import numpy as np

from orrery.base.compiled import Floats2
from orrery.serving.simulation.tables._kernel import (
    B_KV,
    B_RUNNING,
    B_WAITING,
    GAP_BINS_PER_DECADE,
    GAP_LEAST_S,
    GAP_SQUARES,
    GAP_SUM,
    NOTED_S,
    NUM_DECODING,
    NUM_PROMPTS,
    NUM_WAITING,
    POOL,
    POOL_NOTED_S,
    RESERVED,
    WIDTH,
    SimulationState,
)


def count_event(w: SimulationState, at_s: float, column: int, amount: float) -> None:
    """Add to the timeline."""
    if at_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        widen_timeline(w, at_s)
    w.timeline[int(at_s / w.totals[WIDTH]), column] += amount


def touch_at_turn(w: SimulationState, lane: int, now_s: float) -> None:
    """Bring the timeline up to date with a lane and its pool, before something changes there."""
    pool, since_s = w.lanes[lane, POOL], w.rates[lane, NOTED_S]
    pool_since_s = w.rates[pool, POOL_NOTED_S]
    if now_s >= w.timeline.shape[0] * w.totals[WIDTH]:
        widen_timeline(w, now_s)
    running = float(w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS] + w.lanes[lane, RESERVED])
    waiting = float(w.lanes[lane, NUM_WAITING])
    used = float(w.memory.capacity[pool] - w.memory.free[pool] - w.memory.evictable[pool])
    k = int(now_s / w.totals[WIDTH])
    if min(since_s, pool_since_s) >= k * w.totals[WIDTH]:
        w.timeline[k, B_RUNNING] += running * (now_s - since_s)
        w.timeline[k, B_WAITING] += waiting * (now_s - since_s)
        w.timeline[k, B_KV] += used * (now_s - pool_since_s)
    elif running + waiting + used > 0.0:
        spread_over(w.timeline, w.totals[WIDTH], B_RUNNING, since_s, now_s, running)
        spread_over(w.timeline, w.totals[WIDTH], B_WAITING, since_s, now_s, waiting)
        spread_over(w.timeline, w.totals[WIDTH], B_KV, pool_since_s, now_s, used)
    w.rates[lane, NOTED_S] = w.rates[pool, POOL_NOTED_S] = now_s


def spread_over(timeline: Floats2, width_s: float, column: int, since_s: float, now_s: float, amount: float) -> None:
    """Add an integral over time to the bins that it covers; the timeline reaches far enough."""
    if amount == 0.0 or now_s <= since_s:
        return
    k, end = int(since_s / width_s), int(now_s / width_s)
    if k == end:
        timeline[k, column] += amount * (now_s - since_s)
        return
    timeline[k, column] += amount * ((k + 1) * width_s - since_s)
    for between in range(k + 1, end):
        timeline[between, column] += amount * width_s
    timeline[end, column] += amount * (now_s - end * width_s)


def widen_timeline(w: SimulationState, at_s: float) -> None:
    """Put bins of the timeline together in pairs until it reaches far enough."""
    bins = w.timeline.shape[0]
    while at_s >= bins * w.totals[WIDTH]:
        for k in range(bins // 2):
            for c in range(w.timeline.shape[1]):
                w.timeline[k, c] = w.timeline[2 * k, c] + w.timeline[2 * k + 1, c]
        for k in range(bins // 2, bins):
            for c in range(w.timeline.shape[1]):
                w.timeline[k, c] = 0.0
        w.totals[WIDTH] *= 2.0


def gap_bin(gap_s: float) -> int:
    """The bin of the histogram of gaps between tokens that a gap belongs to, perhaps beyond the last."""
    return int(np.log10(max(gap_s, GAP_LEAST_S) / GAP_LEAST_S) * GAP_BINS_PER_DECADE)


def note_gaps(w: SimulationState, bin: int, gap_s: float, weight: float) -> None:
    """Note ``weight`` equal gaps between tokens."""
    w.gaps[min(bin, w.gaps.size - 1)] += weight
    w.totals[GAP_SUM] += gap_s * weight
    w.totals[GAP_SQUARES] += gap_s * gap_s * weight
