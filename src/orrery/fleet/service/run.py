"""Serve requests over days: the serving loop, paused at control moments, starts, faults and repairs."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nextafter

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service.disruptions import Disruption, Exposure, drawn
from orrery.fleet.service.groups import ScaledGroup, groups_of
from orrery.fleet.service.replicas import DRAINING, LOST, OFF, SERVING, STARTING, ReplicaStates
from orrery.fleet.service.result import FRAME, FleetRun
from orrery.fleet.service.rows import BATCH, RequestRows
from orrery.fleet.service.setup import FleetService
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
    disruptions: list[Disruption] = field(default_factory=list[Disruption])
    groups: tuple[ScaledGroup, ...] = field(init=False)
    last_s: float = 0.0
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        self.groups = groups_of(self.states)

    def served(self) -> FleetRun:
        """Run to the end of the horizon and of every request."""
        arrive_s = self.requests.arrive_s
        last_arrival_s = float(arrive_s.max()) if not self.requests.after.size else float(arrive_s.sum())
        horizon_s = max(self.setup.horizon_s, last_arrival_s)
        for d in self._disruptions(horizon_s):
            self._plan(d.at_s, FAULT, d.replica, d)
        self._frame(0.0)
        for k, group in enumerate(self.groups):
            group.look(0.0)
            self._plan_next_control(k, 0.0)
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

    def _plan_next_control(self, group: int, now_s: float) -> None:
        heapq.heappush(self.plan, (now_s + self.groups[group].pace_s, CONTROL, group, 0))

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
        for group in self.groups:
            group.passed(until_s - self.clock_s)
        self.clock_s = until_s

    def _happen(self, kind: int, replica: int, number: int, now_s: float) -> None:
        """What was planned happens."""
        if kind == CONTROL:
            self._control(replica, now_s)
        elif kind == READY:
            if self._is_current(replica, number, STARTING):
                self.states.unpark(replica, now_s)
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

    def _control(self, number: int, now_s: float) -> None:
        """Look at a group of pools, and start or drain replicas."""
        group = self.groups[number]
        group.look(now_s)
        if group is min(self.groups, key=lambda g: g.pace_s):
            self._frame(now_s)
        group.decide()
        self._steer(now_s)
        empty = [k for k, r in enumerate(self.states.replicas) if r.state == DRAINING and self.states.is_idle(k)]
        for k in empty:
            self.states.release(k, now_s)
        if empty:
            self.states.open()
        self._plan_next_control(number, now_s)

    def _steer(self, now_s: float) -> None:
        """Start and drain replicas until every pool has what it should."""
        has_changed = False
        for pool, target in (one for group in self.groups for one in group.targets().items()):
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

    def _frame(self, now_s: float) -> None:
        """Take a frame for the result."""
        w, states = self.rows.world, self.states
        lanes, memory, totals = w.lanes, w.memory, w.totals
        paid = states.paid_by_pool()
        self.frames.append(
            (
                now_s,
                states.count(SERVING),
                states.count(STARTING),
                states.count(DRAINING),
                states.count(LOST),
                sum(paid),
                int(lanes[:, tables.NUM_WAITING].sum()),
                int(lanes[:, [tables.NUM_DECODING, tables.NUM_PROMPTS, tables.RESERVED]].sum()),
                float((memory.capacity - memory.free - memory.evictable).sum()),
                float(totals[tables.BUSY]),
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
            adapter_loads=int(totals[tables.ADAPTER_LOADS]),
            adapter_load_s=float(totals[tables.ADAPTER_LOAD_S]),
        )
