"""The replicas of a run: off, starting, serving, draining or lost; who takes requests, and what has been paid for."""

from dataclasses import dataclass, field

import numpy as np

from orrery.fleet.service.request_tables import RequestTables
from orrery.fleet.service.setup import FleetService
from orrery.serving.live._kernel import lose
from orrery.serving.requests import Ints
from orrery.serving.simulation.tables import _kernel as tables

OFF, STARTING, SERVING, DRAINING, LOST = range(5)
STATES = ("off", "starting", "serving", "draining", "lost")
"""States of a replica, and their names."""

ENTRY, EXIT = tables.ANSWERS, tables.PROMPTS
"""The two ways in, each by the role that it leaves out: new requests, and computed prompts that go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleEvent:
    """A change of one replica."""

    at_s: float
    pool: int
    replica: int
    what: str  # "start", "ready", "drain", "release", or the cause of a loss
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time that one replica was paid for."""

    pool: int
    start_s: float
    end_s: float


@dataclass(slots=True)
class _Replica:
    pool: int
    region: int
    machines: Ints
    lanes: Ints
    state: int = OFF
    since_s: float = 0.0
    generation: int = 0  # of starts: what was planned for an earlier one no longer holds
    paid_from_s: float = 0.0


@dataclass(slots=True, eq=False)
class ReplicaStates:
    """All replicas, pool after pool, and the lanes that requests are sent to."""

    setup: FleetService
    rows: RequestTables
    replicas: list[_Replica] = field(default_factory=list[_Replica])
    events: list[ScaleEvent] = field(default_factory=list[ScaleEvent])
    spans: list[Span] = field(default_factory=list[Span])
    pool_of_lane: Ints = field(init=False)
    parked: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """By way in and region: where requests stand that nobody takes."""

    def __post_init__(self) -> None:
        w = self.rows.world
        machine_of_lane = w.unit_machine[w.lanes[:, tables.UNIT]]
        deployment_of_lane = w.lanes[:, tables.DEPLOYMENT] // (2 if self.setup.service.split else 1)
        hosts = [k if p.host < 0 else p.host for k, p in enumerate(self.setup.service.pools)]
        self.pool_of_lane = deployment_of_lane = np.array(hosts, dtype=np.int64)[deployment_of_lane]
        for pool, terms in enumerate(self.setup.terms):
            machines = np.unique(machine_of_lane[deployment_of_lane == pool])
            for part in np.array_split(machines, terms.replicas_max):
                lanes = np.flatnonzero(np.isin(machine_of_lane, part))
                region = self.setup.region_numbers[pool]
                self.replicas.append(_Replica(pool=pool, region=region, machines=part, lanes=lanes))
        for pool, terms in enumerate(self.setup.terms):
            for r in self.of_pool(pool, OFF)[: terms.replicas_min]:
                self.replicas[r].state = SERVING
        if self.setup.regions is not None:
            of_pool = np.array(self.setup.region_numbers, dtype=np.int64)
            self.rows.change(regions=self.setup.regions.table(of_pool[self.pool_of_lane]))
        self.open()

    # -- counts -------------------------------------------------------------------------------------------------------

    def of_pool(self, pool: int, *states: int) -> list[int]:
        """Replicas of a pool in one of these states."""
        return [k for k, r in enumerate(self.replicas) if r.pool == pool and r.state in states]

    def spent_by_pool(self) -> list[float]:
        """Joules above idle of all steps so far, by pool."""
        spent_j = self.rows.world.rates[:, tables.SPENT_J]
        found: list[float] = np.bincount(self.pool_of_lane, spent_j, len(self.setup.terms)).tolist()
        return found

    def by_model(self, rate: int) -> tuple[float, ...]:
        """Sums over lanes of a rate, by pool of the service."""
        w, service = self.rows.world, self.setup.service
        model = w.lanes[:, tables.DEPLOYMENT] // (2 if service.split else 1)
        return tuple(np.bincount(model, w.rates[:, rate], len(service.pools)).tolist())

    def count(self, *states: int, pools: tuple[int, ...] | None = None) -> int:
        """Replicas in one of these states, of all pools or of some."""
        return sum(r.state in states and (pools is None or r.pool in pools) for r in self.replicas)

    def size_of(self, pools: tuple[int, ...]) -> int:
        """Replicas that these pools hold, in whatever state."""
        return sum(r.pool in pools for r in self.replicas)

    def paid_by_pool(self) -> tuple[int, ...]:
        """Replicas that are paid for now, by pool."""
        return tuple(
            t.replicas_max if t.is_committed else len(self.of_pool(p, STARTING, SERVING, DRAINING))
            for p, t in enumerate(self.setup.terms)
        )

    def is_idle(self, replica: int) -> bool:
        """Whether a replica holds no request, nor a cache that is still to be handed over."""
        w, lanes = self.rows.world, self.replicas[replica].lanes
        if (w.rates[lanes, tables.LOAD_REQUESTS] != 0.0).any():
            return False
        if not self.setup.has_prefill:
            return True
        source, status = w.req[:, tables.SOURCE], w.req[:, tables.STATUS]
        return not bool((np.isin(source, lanes) & (source >= 0) & (status < tables.DONE)).any())

    # -- changes ------------------------------------------------------------------------------------------------------

    def start(self, replica: int, now_s: float, why: str) -> float:
        """Begin to start a replica that is off; the moment at which it is ready."""
        r = self.replicas[replica]
        r.state, r.since_s, r.paid_from_s = STARTING, now_s, now_s
        r.generation += 1
        self._note(now_s, replica, "start", why)
        return now_s + self.setup.terms[r.pool].cold_start_s

    def ready(self, replica: int, now_s: float) -> None:
        """A replica that was starting takes requests, with empty caches."""
        self.empty(replica, now_s)
        self._set(replica, SERVING, now_s, "ready", "")

    def drain(self, replica: int, now_s: float, why: str) -> None:
        """A replica takes no new requests; one that is still starting is given up."""
        if self.replicas[replica].state == STARTING:
            self.release(replica, now_s)
            return
        self._set(replica, DRAINING, now_s, "drain", why)

    def release(self, replica: int, now_s: float) -> None:
        """A replica is given back."""
        self._pay(replica, now_s)
        self._set(replica, OFF, now_s, "release", "")

    def fail(self, replica: int, now_s: float, cause: str, retries: bool) -> None:
        """A replica is lost with all that it holds; its requests go back to the router, or fail."""
        r = self.replicas[replica]
        if r.state in (STARTING, SERVING, DRAINING):
            self._pay(replica, now_s)
        served = r.state in (SERVING, DRAINING)
        self._set(replica, LOST, now_s, cause, "")
        if not served:
            return
        w = self.rows.world
        status = w.req[:, tables.STATUS]
        here = (status > tables.TO_COME) & (status < tables.DONE) & np.isin(w.req[:, tables.LANE], r.lanes)
        self.rows.mark(np.flatnonzero(here), lost=True)
        for machine in r.machines.tolist():
            lose(self.rows.typed, machine, now_s, retries)

    def repaired(self, replica: int, now_s: float) -> None:
        """A lost replica may be started again."""
        self._set(replica, OFF, now_s, "repaired", "")

    def empty(self, replica: int, now_s: float) -> None:
        """Clear a replica's caches of an earlier life, and send requests that stand there on."""
        for machine in self.replicas[replica].machines.tolist():
            lose(self.rows.typed, machine, now_s, True)

    def _set(self, replica: int, state: int, now_s: float, what: str, why: str) -> None:
        self.replicas[replica].state, self.replicas[replica].since_s = state, now_s
        self._note(now_s, replica, what, why)

    def _note(self, now_s: float, replica: int, what: str, why: str) -> None:
        pool = self.replicas[replica].pool
        self.events.append(ScaleEvent(at_s=now_s, pool=pool, replica=replica, what=what, why=why))

    def _pay(self, replica: int, now_s: float) -> None:
        r = self.replicas[replica]
        if now_s > r.paid_from_s:
            self.spans.append(Span(pool=r.pool, start_s=r.paid_from_s, end_s=now_s))

    def open_spans(self, now_s: float) -> list[tuple[int, float]]:
        """Pool and seconds so far of every replica that is paid for now."""
        return [(r.pool, now_s - r.paid_from_s) for r in self.replicas if r.state in (STARTING, SERVING, DRAINING)]

    def close(self, end_s: float) -> None:
        """The run is over: what still runs has been paid for up to now."""
        for k, r in enumerate(self.replicas):
            if r.state in (STARTING, SERVING, DRAINING):
                self._pay(k, end_s)

    # -- the way in ---------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Let requests go to the replicas that serve, new ones and computed prompts each to those of their own; where
        none in a region does to those that drain, and else to one place there that takes no step."""
        self.rows.change(entry=self._way(ENTRY), exit=self._way(EXIT))

    def _way(self, way: int) -> Ints:
        """Lanes of a way in, of all regions."""
        found = [self._way_in(way, region) for region in range(self.setup.num_regions)]
        return np.sort(np.concatenate(found)) if len(found) > 1 else found[0]

    def _way_in(self, way: int, region: int) -> Ints:
        """Lanes of a way into one region; how many replicas take new requests there is noted for who routes to it."""
        counts = self.rows.world.regions.replicas
        for state in (SERVING, DRAINING):
            lanes = self._lanes(way, region, state)
            if lanes.size:
                if way == ENTRY and counts.size:
                    counts[region] = sum(
                        r.region == region and r.state == state and bool(np.isin(r.lanes, lanes).any())
                        for r in self.replicas
                    )
                return lanes
        if way == ENTRY and counts.size:
            counts[region] = 0
        return self._park(way, region)

    def _lanes(self, way: int, region: int, *states: int) -> Ints:
        """Lanes that a way leads to, of the replicas in some states."""
        there = [r for r in self.replicas if r.region == region and r.state in states]
        lanes = np.sort(np.array([k for r in there for k in r.lanes.tolist()], np.int64))
        return lanes[self.rows.world.lanes[lanes, tables.ROLE] != way]

    def _park(self, way: int, region: int) -> Ints:
        """A place for requests while no replica takes them: a lane that is held so that it takes no step."""
        w = self.rows.world
        free = self._lanes(way, region, OFF, STARTING, LOST)
        place = next((k for k in self.parked.values() if k in free), int(free[0]))
        self.parked[way, region] = place
        lanes = self._at(place)
        w.units[w.lanes[lanes, tables.UNIT], tables.BEGAN] = 0.0
        return lanes

    def _at(self, place: int) -> Ints:
        """A place's lane; where several models share its machine, those of all of them."""
        w = self.rows.world
        machine_of_lane = w.unit_machine[w.lanes[:, tables.UNIT]]
        machine = machine_of_lane[place]
        return np.flatnonzero(machine_of_lane == machine) if w.machines[machine, tables.SHARING] else np.array([place])

    def unpark(self, replica: int, now_s: float) -> None:
        """Send requests that stood where nothing served on, where this replica, which now serves, takes them."""
        roles = self.rows.world.lanes[self.replicas[replica].lanes, tables.ROLE]
        for (way, region), place in list(self.parked.items()):
            if (roles != way).any():
                del self.parked[way, region]
                if place not in self.parked.values():
                    self._send_on(place, now_s)

    def _send_on(self, place: int, now_s: float) -> None:
        w = self.rows.world
        status = w.req[:, tables.STATUS]
        here = (status > tables.TO_COME) & (status < tables.DONE) & np.isin(w.req[:, tables.LANE], self._at(place))
        self.rows.mark(np.flatnonzero(here), lost=False)
        lose(self.rows.typed, int(w.unit_machine[w.lanes[place, tables.UNIT]]), now_s, True)
        w.units[w.lanes[self._at(place), tables.UNIT], tables.BEGAN] = np.nan
