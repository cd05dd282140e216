"""An hour under limits on power: the clocks that rules settle at, or take in turn, where every draw is a steady one.

Meters, rules and delays are those of a run (``power_meter``), and what is read is the mean draw at the clocks in force.
So a rule whose threshold lies between the draws at two clocks takes both in turn, as long as its meter and its delay
let it; the hour is the mean over that cycle. Readings that vary around the mean, as requests come, are left out.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.service.power_places import PowerPlaces
from orrery.fleet.service.power_readings import PowerCap
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.serving.requests import Floats

InForce = tuple[Clocks, ...]
"""Clocks of low and of high priority, by limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """One replica in steady state at a clock: mean latencies, draw of its devices, used share of its rate."""

    ttft_s: float
    tpot_s: float
    power_w: float
    used_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedHour:
    """An hour under limits: the mean running replica, and by limit the mean draw and the time of lowered clocks."""

    replica: ReplicaState
    clock_frac: float  # mean of what runs
    drawn_w: tuple[float, ...]
    throttled_frac: tuple[float, ...]


def capped_hour(
    cap: PowerCap, places: PowerPlaces, running: Floats, at_clock: Callable[[float], ReplicaState], idle_w: Floats
) -> CappedHour:
    """The hour of some replicas (``running``: the part of each that runs) which draw ``idle_w`` at least."""

    def drawn(in_force: InForce) -> Floats:
        power_w = np.array([at_clock(c).power_w for c in places.clocks(in_force).tolist()])
        rest_w = np.where(places.is_owned, places.standing_w, 0.0)
        busy_w = places.standing_w + np.maximum(0.0, power_w - idle_w)
        found: Floats = places.is_behind @ (running * busy_w + (1.0 - running) * rest_w)
        return found

    turns = _turns(cap, drawn)
    total = sum(turns.values())
    clock = np.array([places.clocks(in_force) for in_force in turns])
    weight = np.array([[n / total] for n in turns.values()]) * running / max(float(running.sum()), 1e-12)
    there = weight > 0.0
    states = [at_clock(c) for c in clock[there].tolist()]

    def mean(name: str) -> float:
        return float(np.array([getattr(s, name) for s in states]) @ weight[there])

    return CappedHour(
        replica=ReplicaState(**{name: mean(name) for name in ("ttft_s", "tpot_s", "power_w", "used_frac")}),
        clock_frac=float((clock * weight).sum()),
        drawn_w=tuple((np.array(list(turns.values())) / total @ np.array([drawn(f) for f in turns])).tolist()),
        throttled_frac=tuple(
            sum(n for f, n in turns.items() if min(f[k].low_ratio, f[k].high_ratio) < 1.0) / total
            for k in range(len(cap.limits))
        ),
    )


def _turns(cap: PowerCap, drawn: Callable[[InForce], Floats]) -> Counter[InForce]:
    """How many readings long each set of clocks is in force: of the cycle that the rules come into, else of an hour."""
    lag = ceil(cap.delay_s / cap.reading_s - 1e-9)
    in_force: InForce = (Clocks(),) * len(cap.limits)
    ordered, pending = list(in_force), list[tuple[int, int, Clocks]]()
    history: list[InForce] = []
    seen: dict[object, int] = {}
    known: dict[InForce, Floats] = {}
    for step in range(max(1, int(HOUR_S / cap.reading_s))):
        state = (in_force, *ordered, *((due - step, which, clocks) for due, which, clocks in pending))
        if state in seen:
            return Counter(history[seen[state] :])
        seen[state] = step
        history.append(in_force)
        if in_force not in known:
            known[in_force] = drawn(in_force)
        pending += _asked(cap, known[in_force], ordered, step + lag)
        in_force = _changed(in_force, [(k, c) for due, k, c in pending if due <= step])
        pending = [one for one in pending if one[0] > step]
    return Counter(history)


def _asked(cap: PowerCap, drawn_w: Floats, ordered: list[Clocks], due: int) -> list[tuple[int, int, Clocks]]:
    """Clocks that the rules ask for at a reading, and when they come into force; ``ordered`` is kept up to date."""
    found: list[tuple[int, int, Clocks]] = []
    for k, (limit, watts) in enumerate(zip(cap.limits, drawn_w.tolist(), strict=True)):
        target = limit.rule(Reading(drawn_frac=watts / limit.limit_w, clocks=ordered[k]))
        if target != ordered[k]:
            ordered[k] = target
            found.append((due, k, target))
    return found


def _changed(in_force: InForce, due: Sequence[tuple[int, Clocks]]) -> InForce:
    """The clocks in force with those that are due."""
    found = list(in_force)
    for which, clocks in due:
        found[which] = clocks
    return tuple(found)
