"""Result of a run over days: every request, the replicas over time, costs, and the requests hurt by each cause."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orrery.fleet.service.power_readings import PowerReadings
from orrery.fleet.service.replicas import ScaleEvent, Span
from orrery.fleet.service.rows import Outcome
from orrery.fleet.service.setup import FleetService
from orrery.serving.requests import Floats, Ints, Requests
from orrery.serving.simulation.tables import _kernel as tables
from orrery.serving.simulation.world import reached_s

FRAME = (
    "now_s",
    "serving",
    "starting",
    "draining",
    "lost",
    "paid",
    "waiting",
    "running",
    "kv_bytes",
    "busy_s",
    "energy_j",
    "prompt_tokens",
)
"""Columns of a frame; ``busy_s``, ``energy_j`` (above idle) and ``prompt_tokens`` count from the start of the run."""

Flags = NDArray[np.bool_]

CAUSES = ("shed", "fault", "preemption", "cold-start", "power-cap", "queue", "slow")
"""Why a request missed its limits, the first that holds."""


@dataclass(frozen=True, slots=False, kw_only=True, eq=False)
class FleetRun:
    """One run. Times are seconds from its start."""

    setup: FleetService
    requests: Requests
    outcome: Outcome
    events: tuple[ScaleEvent, ...]
    spans: tuple[Span, ...]  # of replicas that were paid for while they ran
    frames: Floats  # (moments, FRAME)
    paid: Floats  # (moments, pools): replicas that were paid for
    end_s: float
    energy_above_idle_j: float
    busy_s: float
    gap_counts: Floats
    spent_j: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (moments and the end, pools): above idle
    power: PowerReadings | None = None  # where a power cap watches the draw
    model_busy_s: tuple[float, ...] = ()  # by pool of the service: time in which steps of its model were computed
    model_spent_j: tuple[float, ...] = ()  # likewise, above idle
    wakes: int = 0  # of models that share replicas, one awake at a time
    adapter_loads: int = 0  # adapters that came from the hosts' memory
    adapter_load_s: float = 0.0  # steps waited for them, in all

    # -- requests -----------------------------------------------------------------------------------------------------

    @cached_property
    def arrive_s(self) -> Floats:
        """When requests came; followers when they really did."""
        reached = reached_s(self.setup.service, self.requests, has_order=True)
        return self.outcome.reached_s - (reached - self.requests.arrive_s)

    @cached_property
    def back_s(self) -> Floats | float:
        """Time that each token is on its way from its region to its client; 0 without regions."""
        return self._way_s("back_s")

    @cached_property
    def reach_s(self) -> Floats | float:
        """Time that each request was on its way to the region that served it; 0 without regions."""
        return self._way_s("reach_s")

    def _way_s(self, name: str) -> Floats | float:
        regions = self.setup.regions
        if regions is None:
            return 0.0
        table: Floats = getattr(regions, name)
        region = self.outcome.region
        found = table[self.origin, np.maximum(region, 0)]
        return np.where(region >= 0, found, 0.0)

    @property
    def origin(self) -> Ints:
        """Number of the origin of every request."""
        found = self.requests.origin
        return found if found.size else np.zeros(self.requests.count, dtype=np.int64)

    @cached_property
    def ttft_s(self) -> Floats:
        """Time to first token as the user sees it; nan where there was none."""
        return self.outcome.first_token_s + self.back_s - self.arrive_s

    @cached_property
    def tpot_s(self) -> Floats:
        """Time per output token after the first; 0 of outputs of one token, nan where the request did not end."""
        steps = np.maximum(self.requests.output_tokens - 1, 1)
        return (self.outcome.finish_s - self.outcome.first_token_s) / steps

    @cached_property
    def e2el_s(self) -> Floats:
        """End-to-end latency."""
        return self.outcome.finish_s + self.back_s - self.arrive_s

    def latency_s(self, metric: str) -> Floats:
        """A metric of every request."""
        found: Floats = getattr(self, f"{metric}_s")
        return found

    @cached_property
    def fates(self) -> Mapping[str, int]:
        """Requests by what became of them; they add up to all."""
        status = self.outcome.status
        served = int((status == tables.DONE).sum())
        refused, failed = int((status == tables.REFUSED).sum()), int((status == tables.FAILED).sum())
        return {
            "served": served,
            "refused": refused,
            "failed": failed,
            "unfinished": status.size - served - refused - failed,
        }

    @cached_property
    def within(self) -> Flags:
        """Whether each request was served within every limit of the setup."""
        good = self.outcome.status == tables.DONE
        for metric, limit_s in self.setup.limits_s.items():
            good &= np.nan_to_num(self.latency_s(metric), nan=np.inf) <= limit_s
        return good

    @cached_property
    def waited_s(self) -> Floats:
        """Time from the first queue to a batch."""
        return self.outcome.admitted_s - self.outcome.reached_s - self.reach_s

    @cached_property
    def hurt(self) -> Mapping[str, Flags]:
        """Requests that missed a limit or were not served, by cause: each has one, the first of ``CAUSES`` that holds.

        It was refused; its replica was lost; it was preempted; it would have met its limits without its wait, while a
        replica was starting (cold start); it would have met them were its times as much shorter as the lowest clock
        that its replica had meanwhile (power cap); or without its wait (queue); or a replica was too slow even so.
        """
        out, left = self.outcome, ~self.within
        found: dict[str, Flags] = {}
        wait_s = np.nan_to_num(self.waited_s, nan=np.inf)
        for cause in CAUSES:
            if cause == "shed":
                which = left & (out.status == tables.REFUSED)
            elif cause == "fault":
                which = left & (out.was_lost | (out.status == tables.FAILED))
            elif cause == "preemption":
                which = left & (out.preemptions > 0)
            elif cause == "cold-start":
                which = left & self._by_wait(wait_s) & (out.was_parked | self._while_starting())
            elif cause == "power-cap":
                which = left & self._by_cap(left)
            elif cause == "queue":
                which = left & self._by_wait(wait_s)
            else:
                which = left.copy()
            found[cause] = which
            left = left & ~which
        return found

    def _by_wait(self, wait_s: Floats) -> Flags:
        """Whether a request would have met its limits without its wait; one that was never in a batch has waited."""
        good = np.ones(wait_s.size, dtype=np.bool_)
        for metric, limit_s in self.setup.limits_s.items():
            value = self.latency_s(metric)
            if metric != "tpot":
                value = value - np.where(np.isfinite(wait_s), wait_s, 0.0)
            good &= (value <= limit_s) | ~np.isfinite(wait_s)
        return good & (wait_s > 0.0)

    def _by_cap(self, missed: Flags) -> Flags:
        """Whether a lowered clock alone may have cost a request its limits."""
        found = np.zeros(missed.size, dtype=np.bool_)
        at, out = np.flatnonzero(missed), self.outcome
        if self.power is None or not at.size:
            return found
        until_s = np.where(np.isfinite(out.finish_s[at]), out.finish_s[at], self.end_s)
        clock = self.power.lowest_clock(out.machine[at].astype(np.int64), out.reached_s[at], until_s)
        good = clock < 1.0
        for metric, limit_s in self.setup.limits_s.items():
            good &= np.nan_to_num(self.latency_s(metric)[at], nan=np.inf) * clock <= limit_s
        found[at] = good
        return found

    def hurt_at(self, number: int) -> int:
        """Requests hurt by a power cap that ran behind one of the limits while its rule had lowered their clock."""
        if self.power is None:
            return 0
        at, out = np.flatnonzero(self.hurt["power-cap"]), self.outcome
        until_s = np.where(np.isfinite(out.finish_s[at]), out.finish_s[at], self.end_s)
        machine = out.machine[at].astype(np.int64)
        return int((self.power.lowest_clock_at(number, machine, out.reached_s[at], until_s) < 1.0).sum())

    def _while_starting(self) -> Flags:
        """Whether a replica was starting while a request waited."""
        began: dict[int, float] = {}
        starts: list[tuple[float, float]] = []
        for event in self.events:
            if event.what == "start":
                began[event.replica] = event.at_s
            elif event.replica in began:
                starts.append((began.pop(event.replica), event.at_s))
        starts += [(at_s, self.end_s) for at_s in began.values()]
        found = np.zeros(self.requests.count, dtype=np.bool_)
        reached_s = np.nan_to_num(self.outcome.reached_s, nan=np.inf)
        until_s = np.nan_to_num(self.outcome.admitted_s, nan=np.inf)
        for start_s, end_s in _merged(starts):
            found |= (reached_s < end_s) & (until_s > start_s)
        return found

    # -- money and energy ---------------------------------------------------------------------------------------------

    @cached_property
    def paid_s(self) -> tuple[float, ...]:
        """Replica-seconds that were paid for, by pool."""
        found = [t.replicas_max * self.end_s if t.is_committed else 0.0 for t in self.setup.terms]
        for span in self.spans:
            if not self.setup.terms[span.pool].is_committed:
                found[span.pool] += max(0.0, min(span.end_s, self.end_s) - span.start_s)
        return tuple(found)

    @cached_property
    def powered_s(self) -> tuple[float, ...]:
        """Replica-seconds that drew power, by pool: those that ran; of owned pools all."""
        found = [0.0] * len(self.setup.terms)
        for span in self.spans:
            found[span.pool] += max(0.0, min(span.end_s, self.end_s) - span.start_s)
        return tuple(
            t.replicas_max * self.end_s if t.purchase == "owned" else s
            for t, s in zip(self.setup.terms, found, strict=True)
        )

    @property
    def cost_usd(self) -> float:
        """Price of all replicas."""
        return sum(s * t.usd_per_s for s, t in zip(self.paid_s, self.setup.terms, strict=True))

    @property
    def energy_j(self) -> float:
        """Energy of the devices: idle power of replicas that run, and what their steps add."""
        idle = sum(s * t.idle_power_w for s, t in zip(self.powered_s, self.setup.terms, strict=True))
        return idle + self.energy_above_idle_j

    @property
    def host_energy_j(self) -> float:
        """Energy of the machines around the devices."""
        return sum(s * t.host_power_w for s, t in zip(self.powered_s, self.setup.terms, strict=True))

    @property
    def busy_frac(self) -> float:
        """Share of the paid time of replicas in which they computed."""
        paid_s = sum(self.paid_s)
        return self.busy_s / paid_s if paid_s > 0 else 0.0


def _merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Overlapping times put together."""
    found: list[tuple[float, float]] = []
    for start_s, end_s in sorted(spans):
        if found and start_s <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end_s))
        else:
            found.append((start_s, end_s))
    return found
