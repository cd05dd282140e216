"""Control of a service whose replicas start, stop and fail: planned moments, samples, an autoscaler, disruptions.

The requests may be recorded ones (``run_fleet``) or live ones (``LiveFleet``): whoever has their tables lets the
serving loop run up to the next moment, and what is decided there happens before anything else of that moment.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from orrery.base.errors import ScenarioError
from orrery.fleet.service.disruptions import Disruption, Exposure, drawn
from orrery.fleet.service.groups import ScaledGroup, groups_of
from orrery.fleet.service.power_meter import PowerMeter
from orrery.fleet.service.replicas import DRAINING, LOST, OFF, SERVING, STARTING, ReplicaStates
from orrery.fleet.service.request_tables import RequestTables
from orrery.fleet.service.setup import FleetService
from orrery.serving.simulation.tables import _kernel as tables

CONTROL, READY, FAULT, TAKEN, REPAIRED, FASTER, METER, CLOCKS, PRICES = range(9)
"""Planned moments, in the order in which those of the same time happen."""


@dataclass(slots=True, eq=False)
class FleetController:
    """Decisions about what runs while the clock goes on. Every frame has the columns of ``result.FRAME``, then the paid
    replicas of each pool, and the joules above idle that each has spent."""

    setup: FleetService
    rows: RequestTables
    states: ReplicaStates
    seed: int
    plan: list[tuple[float, int, int, int]] = field(default_factory=list[tuple[float, int, int, int]])
    frames: list[tuple[float, ...]] = field(default_factory=list[tuple[float, ...]])
    groups: tuple[ScaledGroup, ...] = field(init=False)
    meter: PowerMeter | None = field(init=False)
    disruptions: list[Disruption] = field(default_factory=list[Disruption])
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        self.groups = groups_of(self.states)
        cap = self.setup.power_cap
        self.meter = PowerMeter(cap, self.states) if cap else None

    # -- moments ------------------------------------------------------------------------------------------------------

    def begin(self, horizon_s: float) -> None:
        """Plan what goes wrong up to a time, and look for the first time."""
        self.plan_disruptions(-1.0, horizon_s)
        self._frame(0.0)
        for k, group in enumerate(self.groups):
            group.look(0.0)
            self._plan_next_control(k, 0.0)
        if self.meter:
            heapq.heappush(self.plan, (self.meter.cap.reading_s, METER, 0, 0))
        if self.setup.regions:
            self._plan_prices(0.0)

    @property
    def next_s(self) -> float:
        """The next planned moment; there is always one."""
        return self.plan[0][0]

    def plan_disruptions(self, from_s: float, until_s: float) -> None:
        """Plan what goes wrong after a time, up to another; what was drawn up to an earlier one is the same again."""
        for d in self._disruptions(until_s):
            if d.at_s > from_s:
                self._plan(d.at_s, FAULT, d.replica, d)

    def _disruptions(self, horizon_s: float) -> tuple[Disruption, ...]:
        law = self.setup.disruptions
        if not law.any:
            return ()
        exposed: list[Exposure] = []
        for pool, terms in zip(self.setup.service.own_pools, self.setup.terms, strict=True):
            devices, cluster = pool.deployment.layout.num_devices, pool.deployment.cluster
            nodes = -(-devices // max(1, cluster.device.devices_per_node))
            for k in range(terms.replicas_max):
                zone = terms.zones[k % len(terms.zones)]
                exposed.append(
                    Exposure(
                        num_devices=devices,
                        num_nodes=nodes,
                        is_spot=terms.purchase == "spot",
                        zone=zone,
                        region=terms.region,
                    )
                )
        for outage in law.outages:
            kind = outage.cause
            there = {getattr(e, kind) for e in exposed}
            if (name := getattr(outage, kind)) not in there:
                known = f"the pools have {', '.join(sorted(there))}" if any(there) else f"no pool says its {kind}"
                raise ScenarioError(f"outage: there is no {kind} {name!r}; {known}.")
        return drawn(law, exposed, horizon_s, self.seed)

    def _plan(self, at_s: float, kind: int, replica: int, what: Disruption) -> None:
        """Plan a part of a disruption."""
        self.disruptions.append(what)
        heapq.heappush(self.plan, (at_s, kind, replica, len(self.disruptions) - 1))

    def _plan_next_control(self, group: int, now_s: float) -> None:
        heapq.heappush(self.plan, (now_s + self.groups[group].pace_s, CONTROL, group, 0))

    def _plan_prices(self, now_s: float) -> None:
        """Plan the next moment at which a region's hour begins."""
        regions = self.setup.regions
        if regions is not None:
            step_s = regions.renewal_s
            next_s = (int((regions.start_s + now_s) / step_s + 1e-9) + 1) * step_s - regions.start_s
            heapq.heappush(self.plan, (next_s, PRICES, 0, 0))

    def _due(self, at_s: float) -> Iterator[tuple[int, int, int]]:
        """Planned moments of a time, taken out of the plan."""
        while self.plan and self.plan[0][0] <= at_s:
            _, kind, replica, number = heapq.heappop(self.plan)
            yield kind, replica, number

    def pass_time(self, until_s: float) -> None:
        """The loop has run up to a moment."""
        for group in self.groups:
            group.passed(until_s - self.clock_s)
        self.clock_s = until_s

    def happen(self) -> None:
        """All that is planned for the next moment, to which the clock has come, happens."""
        for kind, replica, number in self._due(self.clock_s):
            self._happen(kind, replica, number, self.clock_s)

    def _happen(self, kind: int, replica: int, number: int, now_s: float) -> None:
        """Apply the planned events that are due."""
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
            self.repair(replica, now_s)
        elif kind == FASTER:
            self.rows.world.slowness[self.states.replicas[replica].machines] = 1.0
        elif kind == PRICES and self.setup.regions:
            self.setup.regions.renew(self.rows.world.regions, now_s)
            self._plan_prices(now_s)
        elif kind == CLOCKS and self.meter:
            self.meter.set(replica, number, now_s)
        elif self.meter:
            self._read_power(now_s, self.meter)

    def _read_power(self, now_s: float, meter: PowerMeter) -> None:
        """Read the draw, and plan the clocks that the rules ask for."""
        heapq.heappush(self.plan, (now_s + meter.cap.reading_s, METER, 0, 0))
        for which, number in meter.read(now_s):
            heapq.heappush(self.plan, (now_s + meter.cap.delay_s, CLOCKS, which, number))

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
        if r.state == LOST or (r.state == OFF and d.cause not in ("zone", "region") and not is_paid):
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
        heapq.heappush(self.plan, (now_s + d.length_s, REPAIRED, d.replica, 0))
        self.lose(d.replica, now_s, d.cause, self.setup.disruptions.retries)

    # -- changes from outside -----------------------------------------------------------------------------------------

    def lose(self, replica: int, now_s: float, cause: str, retries: bool) -> None:
        """A replica is gone; others start in its place where there are more."""
        self.states.fail(replica, now_s, cause, retries)
        self.states.open()
        self._steer(now_s)

    def repair(self, replica: int, now_s: float) -> None:
        """A lost replica may be started again."""
        if self.states.replicas[replica].state == LOST:
            self.states.repaired(replica, now_s)
            self._steer(now_s)

    def scale(self, group: int, target: int, now_s: float) -> None:
        """Set how many replicas of a group of pools should run, until its autoscaler or another caller does."""
        self.groups[group].target = target
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
        lanes, memory, totals = w.lanes.sum(axis=0), w.memory, w.totals
        paid = states.paid_by_pool()
        self.frames.append(
            (
                now_s,
                states.count(SERVING),
                states.count(STARTING),
                states.count(DRAINING),
                states.count(LOST),
                sum(paid),
                int(lanes[tables.NUM_WAITING]),
                int(lanes[tables.NUM_DECODING] + lanes[tables.NUM_PROMPTS] + lanes[tables.RESERVED]),
                float((memory.capacity - memory.free - memory.evictable).sum()),
                float(totals[tables.BUSY]),
                float(totals[tables.ENERGY]),
                float(totals[tables.PROMPTED]),
                *paid,
                *states.spent_by_pool(),
            )
        )
