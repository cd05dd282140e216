"""A row of servers behind one breaker, tick by tick: batches arrive, phases pass, clocks follow what was drawn.

Every server takes batches in turn. The draw of the row is read every so often, a rule (``fleet.power_cap``)
answers with clocks, and these come into force after a delay. Where the draw passes the limit, a brake stops all.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream
from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.power.phases import Phases

Floats = NDArray[np.float64]
Rule = Callable[[Reading], Clocks]

IDLE, PROMPT, DECODE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The servers, their load, and what the breaker, its telemetry and its controls allow."""

    num_servers: int
    limit_w: float
    busy_frac: float  # of a server's time at full clock, in the busiest hour
    peak_to_trough_ratio: float  # how much busier that is than the quietest; a run is one day, however long
    low_priority_frac: float  # of the servers
    run_s: float
    tick_s: float
    reading_s: float  # between two looks at the draw
    delay_s: float  # until new clocks are in force
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Result of a run: power at every tick, batch latencies by priority, and the number of emergency brakes."""

    drawn_w: Floats
    low_s: Floats
    high_s: Floats
    num_brakes: int


@dataclass(slots=True, kw_only=True, eq=False)
class _Servers:
    """State of all servers: phase, what is left of it, batches that wait, and when the one at work arrived."""

    phase: NDArray[np.int64]
    left_frac: Floats
    waiting: NDArray[np.int64]
    queues: list[deque[float]] = field(default_factory=list[deque[float]])


def run(row: Row, at_clock: Callable[[float], Phases], rule: Rule) -> Drawn:
    """The row over ``run_s``; arrivals of a server are the same however many stand beside it."""
    servers, is_low = _start(row), _is_low(row).astype(np.int64)
    arrive = _arrivals(row, at_clock(1.0).batch_s)
    latency: tuple[list[float], list[float]] = ([], [])
    clocks, pending = Clocks(), deque[tuple[float, Clocks]]()
    tabled, (rates, draws) = clocks, _tables(at_clock(1.0), at_clock(1.0))
    drawn, brakes, next_s = list[float](), 0, 0.0
    for tick in range(int(row.run_s / row.tick_s)):
        now_s = tick * row.tick_s
        while pending and pending[0][0] <= now_s:
            clocks = pending.popleft()[1]
        if clocks != tabled:
            tabled, (rates, draws) = clocks, _tables(at_clock(clocks.low_ratio), at_clock(clocks.high_ratio))
        for server in np.flatnonzero(arrive[tick]).tolist():
            servers.queues[server].extend([now_s] * int(arrive[tick, server]))
        servers.waiting += arrive[tick]
        _advance(servers, row.tick_s, now_s, is_low, rates, latency)
        watts = float(draws[is_low, servers.phase].sum())
        drawn.append(watts)
        brakes += watts > row.limit_w
        if now_s >= next_s:
            next_s += row.reading_s
            target_clocks = rule(Reading(drawn_frac=watts / row.limit_w, clocks=pending[-1][1] if pending else clocks))
            if target_clocks != (pending[-1][1] if pending else clocks):
                pending.append((now_s + row.delay_s, target_clocks))
    return Drawn(
        drawn_w=np.array(drawn), low_s=np.array(latency[0]), high_s=np.array(latency[1]), num_brakes=int(brakes)
    )


def _start(row: Row) -> _Servers:
    """All idle."""
    return _Servers(
        phase=np.zeros(row.num_servers, dtype=np.int64),
        left_frac=np.zeros(row.num_servers),
        waiting=np.zeros(row.num_servers, dtype=np.int64),
        queues=[deque() for _ in range(row.num_servers)],
    )


def _is_low(row: Row) -> NDArray[np.bool_]:
    """Priorities spread evenly over the row."""
    count = np.arange(1, row.num_servers + 1)
    return np.floor(count * row.low_priority_frac) > np.floor((count - 1) * row.low_priority_frac)


def _arrivals(row: Row, batch_s: float) -> NDArray[np.int64]:
    """Poisson batches of every server at every tick; the rate is a sinusoid from trough to peak and back."""
    ticks, peak = int(row.run_s / row.tick_s), row.busy_frac * row.tick_s / batch_s
    trough = peak / row.peak_to_trough_ratio
    mean = trough + (peak - trough) * 0.5 * (1.0 - np.cos(2.0 * np.pi * np.arange(ticks) / ticks))
    each = [stream(row.seed, f"row/{i}").poisson(mean) for i in range(row.num_servers)]
    return np.stack(each, axis=1)


def _advance(
    servers: _Servers,
    tick_s: float,
    now_s: float,
    is_low: NDArray[np.int64],
    rates: Floats,
    latency: tuple[list[float], list[float]],
) -> None:
    """One tick: what is left of each phase shrinks; phases that end give way to the next, what is over is noted."""
    servers.left_frac -= tick_s * rates[is_low, servers.phase]
    idle = servers.phase == IDLE
    for server in np.flatnonzero(np.where(idle, servers.waiting > 0, servers.left_frac <= 0.0)).tolist():
        phase, queue = int(servers.phase[server]), servers.queues[server]
        if phase == DECODE:
            latency[1 - int(is_low[server])].append(now_s + tick_s - queue.popleft())
            servers.waiting[server] -= 1
        after = DECODE if phase == PROMPT else PROMPT if queue else IDLE
        pace = rates[is_low[server]]
        over_s = servers.left_frac[server] / pace[phase] if phase != IDLE else 0.0  # negative: into the next phase
        servers.phase[server], servers.left_frac[server] = after, 1.0 + over_s * pace[after]


def _tables(low: Phases, high: Phases) -> tuple[Floats, Floats]:
    """Tables of a server of high and of low priority, by phase: share of it that passes in a second, and power (W)."""
    both = (high, low)
    rates = np.array([[0.0, 1.0 / p.prompt_s, 1.0 / p.decode_s] for p in both])
    return rates, np.array([[p.idle_w, p.prompt_w, p.decode_w] for p in both])
