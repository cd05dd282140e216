"""A fleet whose requests come while its clock moves: the loop of ``Live`` under the control of ``run_fleet``."""

from collections import deque
from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service.controller import FleetController
from orrery.fleet.service.groups import ScaledGroup
from orrery.fleet.service.power_readings import PowerLimit
from orrery.fleet.service.replicas import DRAINING, SERVING, ReplicaStates, ScaleEvent
from orrery.fleet.service.request_tables import latencies_since
from orrery.fleet.service.setup import FleetService
from orrery.serving.live import Live, Snapshot, TokenEvents
from orrery.serving.live.live import MAX_REQUESTS
from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables

FIRST_HORIZON_S = 7 * 86_400.0
"""Faults are drawn for a week, then for twice as long, and so on; the same seed draws the same again."""

MAX_EVENTS = 1000
"""Changes of replicas that are remembered."""


@dataclass(slots=True, eq=False)
class _LiveTables:
    """The tables of a live run as the controller takes them."""

    live: Live
    service: Service
    num_lost: int = 0  # requests whose replica was lost, and that were sent again or failed
    num_parked: int = 0  # requests that found no replica

    @property
    def world(self) -> tables.SimulationState:
        return self.live.world

    @property
    def typed(self) -> Any:
        return self.live.typed

    def change(self, **tables_by_name: Any) -> None:
        self.live.change(self.live.world._replace(**tables_by_name))

    def mark(self, rows: Ints, *, lost: bool) -> None:
        if lost:
            self.num_lost += rows.size
        else:
            self.num_parked += rows.size

    def recent(self, since_s: float, region: int = -1) -> tuple[Floats, Floats]:
        """As rows tell; the row of a request that has ended is used again after thousands of others."""
        return latencies_since(self.live.world, self.service, since_s, region)


class LiveFleet:
    """A service over days whose clock moves as the caller says; it is asked as ``Live`` is.

    A replica here is one that starts and stops; it holds one engine for each independent data-parallel rank.
    """

    def __init__(self, setup: FleetService, live: Live, *, seed: int) -> None:
        self.setup = setup
        self._live, self._tables = live, _LiveTables(live, setup.service)
        self.submit, self.course, self.adapters = live.submit, live.course, live.adapters
        self.watch_cache = live.watch_cache
        self._states = ReplicaStates(setup, self._tables)
        self._control = FleetController(setup, self._tables, self._states, seed)
        self._horizon_s = max(FIRST_HORIZON_S, setup.horizon_s)
        self._control.begin(self._horizon_s)
        self.events: deque[ScaleEvent] = deque(maxlen=MAX_EVENTS)
        self._paid_s = [0.0] * len(setup.terms)

    @staticmethod
    def of(
        setup: FleetService,
        *,
        seed: int = 0,
        max_requests: int = MAX_REQUESTS,
        sizes: Sizes | None = None,
        prefix_block_tokens: int | None = None,
    ) -> "LiveFleet | Infeasible":
        """A fleet at time 0; Infeasible where a model does not fit. The arguments are those of ``Live.of``."""
        live = Live.of(
            setup.service, seed=seed, max_requests=max_requests, sizes=sizes, prefix_block_tokens=prefix_block_tokens
        )
        return live if isinstance(live, Infeasible) else LiveFleet(setup, live, seed=seed)

    # -- requests -----------------------------------------------------------------------------------------------------

    def cancel(self, id: int, *, now_s: float) -> None:
        """The client hung up."""
        self._run_to(now_s)
        self._live.cancel(id, now_s=now_s)

    # -- the clock ----------------------------------------------------------------------------------------------------

    @property
    def next_s(self) -> float:
        """When something happens next; there is always a moment at which somebody looks."""
        return min(self._live.next_s, self._control.next_s)

    @property
    def clock_s(self) -> float:
        """Up to where everything has happened."""
        return self._live.clock_s

    @property
    def num_waiting(self) -> int:
        """Requests in the queues of all replicas, and those that wait for a replica."""
        return self._live.num_waiting

    def advance(self, until_s: float, most_rows: int = 0) -> TokenEvents:
        """Let the clock run to ``until_s``, that moment included; what came out. It stops before where there are more
        than ``most_rows`` rows, or any at a planned moment (0: it does not)."""
        self._run_to(until_s, most_rows)
        return self._live.drained()

    def _run_to(self, until_s: float, most_rows: int = 0) -> None:
        while (at_s := self._control.next_s) <= until_s:
            if at_s > self._horizon_s:
                self._control.plan_disruptions(self._horizon_s, 2.0 * self._horizon_s)
                self._horizon_s *= 2.0
                continue
            if self._live.run_to(nextafter(at_s, -inf), most_rows):
                return
            self._control.pass_time(at_s)
            self._control.happen()
            self._note()
            if most_rows and self._live.has_news:
                return
        self._live.run_to(until_s, most_rows)

    def _note(self) -> None:
        """Keep of a change what is needed later: a run may last for ever."""
        self._live.collect()
        self.events.extend(self._states.events)
        for span in self._states.spans:
            self._paid_s[span.pool] += span.end_s - span.start_s
        del self._states.events[:], self._states.spans[:], self._control.frames[:]
        if meter := self._control.meter:
            meter.forget()

    # -- replicas -----------------------------------------------------------------------------------------------------

    @property
    def replicas(self) -> list[tuple[int, int, float, Ints]]:
        """Pool, state, since when, and engines of every replica that may run."""
        return [(r.pool, r.state, r.since_s, r.machines) for r in self._states.replicas]

    @property
    def targets(self) -> list[int]:
        """Replicas that should run, by pool."""
        found = {pool: count for group in self._control.groups for pool, count in group.targets().items()}
        return [found[pool] for pool in range(len(self.setup.terms))]

    @property
    def groups(self) -> tuple[ScaledGroup, ...]:
        """Pools that are scaled together: all, or those for prompts, then those for answers."""
        return self._control.groups

    @property
    def power(self) -> list[tuple[PowerLimit, float, float]]:
        """Every power limit with its latest reading in watts, and the lowest clock that its rule has in force."""
        if (meter := self._control.meter) is None:
            return []
        lowest = (min(m.clocks.low_ratio, m.clocks.high_ratio) for m in meter.metered)
        return list(zip(meter.cap.limits, meter.last_w.tolist(), lowest, strict=True))

    @property
    def num_lost(self) -> int:
        """Requests whose replica was lost so far."""
        return self._tables.num_lost

    def paid_s(self) -> list[float]:
        """Seconds of a replica that were paid for up to now, by pool."""
        now_s, found = self.clock_s, list(self._paid_s)
        for pool, seconds_s in self._states.open_spans(now_s):
            found[pool] += seconds_s
        return [t.replicas_max * now_s if t.is_committed else s for t, s in zip(self.setup.terms, found, strict=True)]

    def snapshot(self) -> Snapshot:
        """State of every engine; one is up while its replica serves or drains."""
        is_up = np.zeros_like((now := self._live.snapshot()).is_up)
        for _, state, _, engines in self.replicas:
            is_up[engines] = state in (SERVING, DRAINING)
        return replace(now, is_up=is_up)

    def kill(self, replica: int, *, now_s: float, retry: bool = True) -> None:
        """A replica is lost until it is revived; where there are others, one starts in its place."""
        self._check(replica)
        if self.setup.service.lends_cache:
            raise ScenarioError("kill: replicas that hold cache for each other stand and fall together.")
        self._arrive_at(now_s)
        self._control.lose(replica, self._control.clock_s, "killed", retry)
        self._note()

    def revive(self, replica: int, *, now_s: float) -> None:
        """A lost replica may be started again, with its cold start."""
        self._check(replica)
        self._arrive_at(now_s)
        self._control.repair(replica, self._control.clock_s)
        self._note()

    def slow(self, replica: int, factor: float) -> None:
        """From its next step on, a replica's steps take ``factor`` times as long."""
        self._check(replica)
        for engine in self._states.replicas[replica].machines.tolist():
            self._live.slow(engine, factor)

    def set_replicas(self, count: int, *, now_s: float, group: int = -1) -> None:
        """Set how many replicas of a group of pools should run: they start and drain as under an autoscaler."""
        self.check_replicas(count, group)
        self._arrive_at(now_s)
        self._control.scale(group, count, self._control.clock_s)
        self._note()

    def check_replicas(self, count: int, group: int = -1) -> None:
        """Refuse a number of replicas that a group of pools cannot be told to run."""
        if group < 0 and self.setup.num_regions > 1:
            raise ScenarioError("replicas: there are several regions; scale each by its Deployment.")
        found = self.groups[group]
        low, high = limits_of(found)
        if found.scaler is not None:
            raise ScenarioError(f"replicas: {found.scaler.name} decides how many run; start without an autoscaler.")
        if not low <= count <= high:
            raise ScenarioError(f"replicas: got {count}; the pools run {low} to {high}.")

    def _check(self, replica: int) -> None:
        if not 0 <= replica < len(self._states.replicas):
            raise ScenarioError(f"replica: there is no {replica}; write 0 to {len(self._states.replicas) - 1}.")

    def _arrive_at(self, now_s: float) -> None:
        self._run_to(now_s)
        self._control.pass_time(max(now_s, self._live.clock_s, self._control.clock_s))


def limits_of(group: ScaledGroup) -> tuple[int, int]:
    """The fewest and the most replicas of a group."""
    return group.signals.replicas_min, group.signals.replicas_max
