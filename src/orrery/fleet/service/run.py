"""Serve requests over days: the serving loop, paused at control moments, starts, faults and repairs."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nextafter

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service.disruptions import Disruption, Exposure, drawn
from orrery.fleet.service.replicas import DRAINING, LOST, OFF, SERVING, STARTING, ReplicaStates
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.fleet.service.rows import BATCH, RequestRows
from orrery.fleet.service.setup import FleetService
from orrery.fleet.service.signals import Sample, Signals
from orrery.serving.requests import Requests
from orrery.serving.simulation import _kernel
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.prepare import blocks_of, prepare
from orrery.serving.simulation.simulate import check
from orrery.serving.simulation.tables import _kernel as tables

LONGEST_AFTER_S = 7 * 86_400.0
"""A run ends so long after the last arrival, whatever is still there."""

CONTROL, READY, FAULT, TAKEN, REPAIRED, FASTER = range(6)
"""Planned moments, in the order in which those of the same time happen."""


def run_fleet(setup: FleetService, requests: Requests, *, seed: int = 0, batch: int = BATCH) -> FleetRun | Infeasible:
    """Serve ``requests`` with replicas that start, stop and fail; Infeasible where a model does not fit."""
    check(requests)
    block_tokens, blocks_each = blocks_of(setup.service, requests.prefix_block_tokens)
    prepared = prepare(setup.service, Sizes.of(requests, block_tokens), blocks_each=blocks_each)
    if isinstance(prepared, Infeasible):
        return prepared
    rows = RequestRows(setup.service, requests, prepared, seed, batch)
    return _Run(setup, requests, rows, ReplicaStates(setup, rows), seed).served()


@dataclass(slots=True, eq=False)
class _Run:
    """One run while it goes on."""

    setup: FleetService
    requests: Requests
    rows: RequestRows
    states: ReplicaStates
    seed: int
    plan: list[tuple[float, int, int, int]] = field(default_factory=list[tuple[float, int, int, int]])
    frames: list[tuple[float, ...]] = field(default_factory=list[tuple[float, ...]])
    signals: Signals = field(init=False)
    disruptions: list[Disruption] = field(default_factory=list[Disruption])
    target: float = -1.0  # replicas that should run; below 0: every pool's minimum
    seen: tuple[float, int, float] = (0.0, 0, 0.0)  # at the sample before: time, arrivals, busy seconds
    last_s: float = 0.0
    serving_s: float = 0.0  # replica-seconds of serving since the sample before
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        terms = self.setup.terms
        self.signals = Signals(
            replicas_min=sum(t.replicas_min for t in terms),
            replicas_max=sum(t.replicas_max for t in terms),
            cold_start_s=max(t.cold_start_s for t in terms),
            capacity_requests_per_s=self.setup.capacity_requests_per_s,
            limits_s=self.setup.limits_s,
            recent=self.rows.recent,
            past=self.setup.rate_forecast,
        )

    def served(self) -> FleetRun:
        """Run to the end of the horizon and of every request."""
        arrive_s = self.requests.arrive_s
        last_arrival_s = float(arrive_s.max()) if not self.requests.after.size else float(arrive_s.sum())
        horizon_s = max(self.setup.horizon_s, last_arrival_s)
        for d in self._disruptions(horizon_s):
            self._plan(d.at_s, FAULT, d.replica, d)
        self._look(0.0)
        self._plan_next_control(0.0)
        while self.rows.unfinished() if self._is_over(horizon_s) else True:
            if self.plan[0][0] > horizon_s + LONGEST_AFTER_S:
                break
            at_s = self.plan[0][0]
            self._advance(at_s)
            for kind, replica, number in self._due(at_s):
                self._happen(kind, replica, number, at_s)
        return self._result(horizon_s)

    # -- moments ------------------------------------------------------------------------------------------------------

    def _is_over(self, horizon_s: float) -> bool:
        return self.clock_s >= horizon_s

    def _disruptions(self, horizon_s: float) -> tuple[Disruption, ...]:
        law = self.setup.disruptions
        if not law.any:
            return ()
        exposed: list[Exposure] = []
        for pool, terms in zip(self.setup.service.pools, self.setup.terms, strict=True):
            devices, cluster = pool.deployment.layout.num_devices, pool.deployment.cluster
            nodes = -(-devices // max(1, cluster.device.devices_per_node))
            for k in range(terms.replicas_max):
                zone = terms.zones[k % len(terms.zones)]
                exposed.append(
                    Exposure(num_devices=devices, num_nodes=nodes, is_spot=terms.purchase == "spot", zone=zone)
                )
        zones = {e.zone for e in exposed}
        for outage in law.outages:
            if outage.zone not in zones:
                raise ScenarioError(
                    f"outage: there is no zone {outage.zone!r}; the pools have {', '.join(sorted(map(repr, zones)))}."
                )
        return drawn(law, exposed, horizon_s, self.seed)

    def _plan(self, at_s: float, kind: int, replica: int, what: Disruption) -> None:
        """Plan a part of a disruption."""
        self.disruptions.append(what)
        heapq.heappush(self.plan, (at_s, kind, replica, len(self.disruptions) - 1))

    def _plan_next_control(self, now_s: float) -> None:
        heapq.heappush(self.plan, (now_s + self.setup.pace_s, CONTROL, -1, 0))

    def _due(self, at_s: float) -> Iterator[tuple[int, int, int]]:
        """Planned moments of a time, taken out of the plan."""
        while self.plan and self.plan[0][0] <= at_s:
            _, kind, replica, number = heapq.heappop(self.plan)
            yield kind, replica, number

    def _advance(self, until_s: float) -> None:
        """Let the loop run up to a moment, which itself comes after what is decided there."""
        w_counts = self.rows.world.counts
        self.rows.load(until_s)
        w_counts[tables.SERVED] = 0
        last_s = _kernel.run(self.rows.typed, nextafter(until_s, -inf), 0, *self.rows.calls)
        self.last_s = max(self.last_s, last_s)
        self.serving_s += self.states.count(SERVING) * (until_s - self.clock_s)
        self.clock_s = until_s

    def _happen(self, kind: int, replica: int, number: int, now_s: float) -> None:
        """What was planned happens."""
        if kind == CONTROL:
            self._control(now_s)
        elif kind == READY:
            if self._is_current(replica, number, STARTING):
                self.states.unpark(now_s)
                self.states.ready(replica, now_s)
                self.states.open()
        elif kind == FAULT:
            self._disrupt(self.disruptions[number], now_s)
        elif kind == TAKEN:
            d = self.disruptions[number]
            if self.states.replicas[replica].state in (SERVING, DRAINING, STARTING):
                self._take(d, now_s)
        elif kind == REPAIRED:
            if self.states.replicas[replica].state == LOST:
                self.states.repaired(replica, now_s)
                self._steer(now_s)
        elif kind == FASTER:
            self.rows.world.slowness[self.states.replicas[replica].machines] = 1.0

    def _is_current(self, replica: int, generation: int, state: int) -> bool:
        r = self.states.replicas[replica]
        return r.state == state and r.generation == generation

    def _disrupt(self, d: Disruption, now_s: float) -> None:
        """Apply a disruption to its replica."""
        r = self.states.replicas[d.replica]
        if d.cause == "slow":
            self.rows.world.slowness[r.machines] = self.setup.disruptions.slow_ratio
            heapq.heappush(self.plan, (now_s + d.length_s, FASTER, d.replica, 0))
            return
        is_paid = self.setup.terms[r.pool].is_committed
        if r.state == LOST or (r.state == OFF and d.cause != "zone" and not is_paid):
            return
        if d.notice_s > 0.0 and r.state == SERVING:
            self.states.drain(d.replica, now_s, f"{d.cause} notice")
            self.states.open()
            self._plan(now_s + d.notice_s, TAKEN, d.replica, d)
            self._steer(now_s)
            return
        self._take(d, now_s)

    def _take(self, d: Disruption, now_s: float) -> None:
        """A replica is gone until it is repaired."""
        self.states.fail(d.replica, now_s, d.cause)
        self.states.open()
        heapq.heappush(self.plan, (now_s + d.length_s, REPAIRED, d.replica, 0))
        self._steer(now_s)

    # -- control ------------------------------------------------------------------------------------------------------

    def _control(self, now_s: float) -> None:
        """Look at the service, and start or drain replicas."""
        self._look(now_s)
        if self.setup.scaler:
            self.target = self.setup.scaler.rule(self.signals, self.setup.scaler.knobs)
        self._steer(now_s)
        empty = [k for k, r in enumerate(self.states.replicas) if r.state == DRAINING and self.states.is_idle(k)]
        for k in empty:
            self.states.release(k, now_s)
        if empty:
            self.states.open()
        self._plan_next_control(now_s)

    def _targets(self) -> list[int]:
        """Replicas that should run, by pool: every pool's minimum, then pools in their order up to their maximum."""
        terms = self.setup.terms
        found = [t.replicas_min for t in terms]
        more = int(np.ceil(self.target - 1e-9)) - sum(found)
        for pool, t in enumerate(terms):
            add = min(max(0, more), t.replicas_max - found[pool])
            found[pool] += add
            more -= add
        return found

    def _steer(self, now_s: float) -> None:
        """Start and drain replicas until every pool has what it should."""
        has_changed = False
        for pool, target in enumerate(self._targets()):
            there = self.states.of_pool(pool, SERVING, STARTING)
            for k in self.states.of_pool(pool, OFF)[: max(0, target - len(there))]:
                ready_s = self.states.start(k, now_s, f"{target} should run")
                generation = self.states.replicas[k].generation
                heapq.heappush(self.plan, (ready_s, READY, k, generation))
            surplus = len(there) - target
            newest = sorted(there, key=lambda k: (self.states.replicas[k].state != STARTING, -self._age(k), -k))
            for k in newest[: max(0, surplus)]:
                self.states.drain(k, now_s, f"{target} should run")
                has_changed = True
        if has_changed:
            self.states.open()

    def _age(self, replica: int) -> float:
        return self.states.replicas[replica].since_s

    def _look(self, now_s: float) -> None:
        """Take a sample for the autoscaler, and a frame for the result."""
        w, states = self.rows.world, self.states
        lanes = w.lanes
        waiting = int(lanes[:, tables.NUM_WAITING].sum())
        running = int(lanes[:, [tables.NUM_DECODING, tables.NUM_PROMPTS, tables.RESERVED]].sum())
        serving, starting = states.count(SERVING), states.count(STARTING)
        memory, totals = w.memory, w.totals
        used = float((memory.capacity - memory.free - memory.evictable).sum())
        arrived, busy_s = int(w.counts[tables.ARRIVED]), float(totals[tables.BUSY])
        since_s, before, busy_before_s = self.seen
        each = memory.capacity.sum() / max(1, len(states.replicas))
        self.signals.add(
            Sample(
                now_s=now_s,
                serving=serving,
                starting=starting,
                waiting=waiting,
                running=running,
                arrivals=arrived - before,
                since_s=now_s - since_s,
                busy_frac=(busy_s - busy_before_s) / self.serving_s if self.serving_s > 0 else 0.0,
                kv_frac=min(1.0, used / (each * serving)) if serving else 0.0,
            )
        )
        self.seen, self.serving_s = (now_s, arrived, busy_s), 0.0
        paid = states.paid_by_pool()
        self.frames.append(
            (
                now_s,
                serving,
                starting,
                states.count(DRAINING),
                states.count(LOST),
                sum(paid),
                waiting,
                running,
                used,
                busy_s,
                float(totals[tables.ENERGY]),
                float(totals[tables.PROMPTED]),
                *paid,
            )
        )

    def _result(self, horizon_s: float) -> FleetRun:
        outcome = self.rows.outcome()
        finished_s = outcome.finish_s[np.isfinite(outcome.finish_s)]
        end_s = max(horizon_s if self.setup.horizon_s else 0.0, float(finished_s.max()) if finished_s.size else 0.0)
        self.states.close(max(end_s, self.clock_s))
        totals = self.rows.world.totals
        frames = np.array(self.frames)
        return FleetRun(
            setup=self.setup,
            requests=self.requests,
            outcome=outcome,
            events=tuple(self.states.events),
            spans=tuple(self.states.spans),
            frames=frames[:, : len(FRAME)],
            paid=frames[:, len(FRAME) :],
            end_s=end_s,
            energy_above_idle_j=float(totals[tables.ENERGY]),
            busy_s=float(totals[tables.BUSY]),
            gap_counts=self.rows.world.gaps,
        )
