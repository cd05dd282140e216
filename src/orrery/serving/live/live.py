"""The simulator's loop with an open end: it runs up to a moment, takes what has come meanwhile, and runs on.

The loop, its tables and its techniques are those of ``simulate``, so the same arrivals are served at the same moments
to the bit. What differs is where requests come from and where tokens go: a request is written into a free row of the
tables and waits in the queue of events until its front end is through; every booked step appends a row for each token
that it made. A row is free again when its request has ended and holds nothing, so a run may last for ever.

A token's time is the end of the step that made it, or with regions the moment at which its client has it; the first
one's, less the submission, is the time to first token that ``simulate`` counts, front end included.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from math import inf, isfinite
from typing import Any

import numpy as np

from orrery.base.compiled import converted
from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.execution.compression import kept_tokens
from orrery.execution.memory import Infeasible
from orrery.serving.batching import DRAWS
from orrery.serving.live._kernel import expect, lose, withdraw
from orrery.serving.live.cache_watch import JOURNAL, CacheWatch
from orrery.serving.live.prefixes import Prefixes
from orrery.serving.live.recent import LruSlots
from orrery.serving.live.replica_index import ReplicaIndex
from orrery.serving.live.result import RequestProgress, Snapshot, TokenEvents
from orrery.serving.live.snapshot import adapters_now, snapshot_of
from orrery.serving.live.world import ROWS, empty_world, sizes_of
from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation._kernel import run
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.prepare import Prepared, blocks_of, prepare
from orrery.serving.simulation.rules import ROUTERS
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables

MAX_REQUESTS = 16_384
"""Unfinished requests at a time, where the caller does not say."""


class Live:
    """A service whose clock moves as the caller says. Times are seconds of that clock, which starts at 0."""

    def __init__(self, service: Service, prepared: Prepared, *, max_requests: int, seed: int) -> None:
        self._service, self._prepared = service, prepared
        self._world = empty_world(service, prepared, max_requests, seed)
        self._typed = converted(self._world)  # converting all tables at each call takes longer than to simulate a step
        self._doors = ReplicaIndex(service, self._world)
        self._blank = self._world.req[0].copy()
        self._draws = stream(seed, "router") if DRAWS in ROUTERS.get(service.router).traits else None
        self._free = deque(range(max_requests))
        self._lingering: list[int] = []  # ended, but in a batch that stays together
        self._row_of: dict[int, int] = {}
        self._ended: dict[int, int] = {}  # rows of those whose end is still to be told,
        self._description: dict[int, int] = {}  # and of those of whom the last advance told it
        self._prefixes, self._sessions, self._clients = Prefixes(), LruSlots(), LruSlots()
        self._watch: CacheWatch | None = None
        self._count, self._clock_s = 0, 0.0
        self._reached_s = 0.0  # when the last request reaches the first queue: none passes another
        self._rows: list[Ints] = []
        self._times: list[Floats] = []

    @staticmethod
    def of(
        service: Service,
        *,
        seed: int = 0,
        max_requests: int = MAX_REQUESTS,
        sizes: Sizes | None = None,
        prefix_block_tokens: int | None = None,
    ) -> "Live | Infeasible":
        """A service at time 0, with empty caches; Infeasible where a model does not fit.

        ``sizes`` are the longest and usual sequences that may come (the model's context otherwise: longer ones are
        refused); a shared prefix block has ``prefix_block_tokens``, the engine's block where it is not said.
        """
        engine = service.pools[0].deployment.engine
        shared = engine.block_tokens if prefix_block_tokens is None else prefix_block_tokens
        block_tokens, blocks_each = blocks_of(service, shared)
        found = sizes or sizes_of(service, block_tokens)
        if isinstance(found, Infeasible):
            return found
        prepared = prepare(service, found, blocks_each=blocks_each, reports=True)
        if isinstance(prepared, Infeasible):
            return prepared
        _rehearse(Live(service, prepared, max_requests=2, seed=seed), can_lose=not service.lends_cache)
        return Live(service, prepared, max_requests=max_requests, seed=seed)

    # -- requests -----------------------------------------------------------------------------------------------------

    def submit(
        self,
        *,
        now_s: float,
        input_tokens: int,
        output_tokens: int,
        priority: float = 0.0,
        session: Hashable = -1,
        client: Hashable = 0,
        adapter: int = -1,
        origin: int = 0,
        prefix_ids: Iterable[Hashable] = (),
    ) -> int:
        """A request comes at ``now_s`` (or now, if that is past); its id: 0, 1, 2, … in order of submission.

        ``prefix_ids`` name the leading blocks of its tokens, prompt then answer, by anything that is equal where the
        blocks are, and their past; ``session`` and ``adapter`` -1 are
        none; ``origin`` is where its client is; lower priorities go first.
        """
        if input_tokens < 1 or output_tokens < 1 or not isfinite(now_s):
            raise ScenarioError(
                f"submit: got {input_tokens} + {output_tokens} tokens at {now_s} s; write at least 1 each, and a time."
            )
        if not self._free:
            raise ScenarioError(f"max_requests: {len(self._row_of)} requests are unfinished already; allow more.")
        i, number = self._free[0], self._count
        self._fill(i, number, input_tokens, output_tokens, priority)
        self._world.req[i, [tables.ADAPTER, tables.ORIGIN]] = adapter, origin
        self._name(i, session, client)
        if self._prepared.blocks_each:
            self.change(self._prefixes.enter(self._world, i, prefix_ids))  # it may refuse: nothing is taken by then
        self._row_of[number] = self._free.popleft()
        self._count += 1
        w = self._world
        due_s = max(now_s + float(self._service.entry_s(input_tokens)), self._clock_s, self._reached_s)
        self._reached_s = due_s
        w.when[i, tables.ENTER] = due_s
        expect(self._typed, i, due_s)
        return number

    def cancel(self, id: int, *, now_s: float) -> None:
        """The client hung up: the request leaves its queue or batch, and its cache is free. Nothing more is told of
        it; of one that has ended before, nothing happens."""
        self.run_to(now_s)
        i = self._row_of.pop(id, None)
        if i is not None:
            withdraw(self._typed, i, self._clock_s)
            self._release(i)

    def _fill(self, i: int, number: int, input_tokens: int, output_tokens: int, priority: float) -> None:
        w, row = self._world, self._world.req[i]
        row[:] = self._blank
        row[tables.INPUT], row[tables.OUTPUT] = input_tokens, output_tokens
        compression = self._service.compression
        if compression.kept_tokens_frac < 1.0 or compression.budget_tokens:
            row[tables.DROPPED] = input_tokens - kept_tokens(compression, input_tokens)
        w.when[i] = np.nan
        w.when[i, tables.PRIORITY], w.when[i, tables.LAST], w.number[i] = priority, 0.0, number
        if self._draws is not None:
            w.draws[i] = self._draws.random(2)

    def _name(self, i: int, session: Hashable, client: Hashable) -> None:
        """Record the request's session and client, as small numbers."""
        w = self._world
        if session != -1:
            known, is_new = self._sessions.number_of(session)
            w.req[i, tables.SESSION] = known
            if is_new:
                w.home[known] = -1
        known, is_new = self._clients.number_of(client)
        w.req[i, tables.CLIENT] = known
        if is_new:
            w.tag[1 + known] = 0.0

    # -- the clock ----------------------------------------------------------------------------------------------------

    @property
    def next_s(self) -> float:
        """When something happens next, perhaps without a token; infinite while nobody is there."""
        w = self._world
        event = w.counts[tables.EVENTS]
        due_s = float(w.due_s[event]) if event >= 0 else inf
        return min(due_s, float(w.moments[w.winners[1]]))

    @property
    def num_waiting(self) -> int:
        """Requests in the queues of all replicas at the clock's moment."""
        return int(self._world.lanes[:, tables.NUM_WAITING].sum())

    @property
    def clock_s(self) -> float:
        """Up to where everything has happened."""
        return self._clock_s

    def advance(self, until_s: float, most_rows: int = 0) -> TokenEvents:
        """Let the clock run to ``until_s``, that moment included (infinite: until nobody is there); what came out. It
        stops before, after the event with which there are more than ``most_rows`` rows (0: as many as there are)."""
        self.run_to(until_s, most_rows)
        return self.drained()

    def drained(self) -> TokenEvents:
        """Rows since the last call."""
        description = TokenEvents.of(self._rows, self._times)
        self._rows, self._times = [], []
        self._description, self._ended = self._ended, {}
        return description

    @property
    def has_news(self) -> bool:
        """Whether something has come out that is not told yet."""
        return bool(self._rows)

    def course(self, id: int) -> RequestProgress:
        """State of a request that goes on, or whose end the last ``advance`` has reported."""
        i = self._row_of.get(id, self._description.get(id, -1))
        if i < 0:
            raise ScenarioError(f"course: request {id} is none that goes on or has just ended.")
        w = self._world
        return RequestProgress(
            replica=int(self._doors.machine_of_lane[w.req[i, tables.LANE]]),
            admitted_s=float(w.when[i, tables.ADMITTED_S]),
            cached_tokens=int(w.req[i, tables.CACHED]),
            num_preemptions=int(w.req[i, tables.PREEMPTED]),
        )

    @property
    def world(self) -> tables.SimulationState:
        """The tables as they are now."""
        return self._world

    @property
    def typed(self) -> Any:
        """The same as compiled code takes them."""
        return self._typed

    def change(self, world: tables.SimulationState) -> None:
        """Other tables take the place of those so far, where they are others."""
        if world is not self._world:
            self._world, self._typed = world, converted(world)

    def run_to(self, until_s: float, most_rows: int = 0) -> bool:
        """Run, and keep what comes out; whether it stopped before, with more rows than that. A time that is past
        changes nothing."""
        if not until_s >= self._clock_s:
            return False
        calls, is_full = self._prepared.calls, True
        while is_full:
            at_once = most_rows or ROWS
            last_s = run(self._typed, min(until_s, tables.FOREVER_S), at_once, *calls)
            self._clock_s = max(self._clock_s, last_s)
            is_full = self._world.counts[tables.EMITTED] > at_once
            self.collect()
            if is_full and most_rows:
                return True
        if until_s < inf:
            self._clock_s = until_s
        return False

    def collect(self) -> None:
        """Keep the reported rows; who has ended gives back its row."""
        w = self._world
        count = int(w.counts[tables.EMITTED])
        w.counts[tables.EMITTED] = 0
        if self._lingering:
            gone = [i for i in self._lingering if not w.req[i, tables.BLOCKS]]
            self._lingering = [i for i in self._lingering if w.req[i, tables.BLOCKS]]
            for i in gone:
                self._release(i)
        if not count:
            return
        table = w.emitted[:count].copy()
        self._rows.append(table)
        self._times.append(w.emitted_s[:count] + self._way_back_s(table))
        for number in table[table[:, tables.E_END] != 0, tables.E_NUMBER].tolist():
            i = self._ended[number] = self._row_of.pop(number)
            if w.req[i, tables.BLOCKS]:
                self._lingering.append(i)
            else:
                self._release(i)

    def _way_back_s(self, table: Ints) -> Floats | float:
        """Time until the clients of reported rows have them; 0 without regions."""
        w = self._world
        if not w.regions.replicas.size:
            return 0.0
        rows = np.array([self._row_of.get(number, -1) for number in table[:, tables.E_NUMBER].tolist()])
        region = w.req[rows, tables.REGION]
        is_known = (rows >= 0) & (region >= 0)
        return np.where(is_known, w.regions.back_s[w.req[rows, tables.ORIGIN], np.maximum(region, 0)], 0.0)

    def _release(self, i: int) -> None:
        """A row is free for another request; the oldest free one is taken first, so that what a request has left in a
        cache under its row is mostly gone by then."""
        if self._prepared.blocks_each:
            self._prefixes.leave(self._world, i)
        self._free.append(i)

    # -- replicas -----------------------------------------------------------------------------------------------------

    def kill(self, replica: int, *, now_s: float, retry: bool = True) -> None:
        """A replica is lost, with its caches and the step in flight. Its requests go back to the router with the tokens
        that they have so far, or fail; so do later ones while no replica is left."""
        self._doors.check(replica)
        if self._service.lends_cache:
            raise ScenarioError(
                "kill: replicas that hold cache for each other stand and fall together; lends_cache = false."
            )
        self.run_to(now_s)
        self._doors.is_up[replica] = False
        self.change(self._doors.opened(self._world))
        lose(self._typed, replica, self._clock_s, retry)
        self.collect()

    def revive(self, replica: int, *, now_s: float) -> None:
        """A lost replica is back, with empty caches."""
        self._doors.check(replica)
        self.run_to(now_s)
        self._doors.is_up[replica] = True
        self.change(self._doors.opened(self._world))

    def empty_caches(self, *, now_s: float) -> None:
        """Every replica forgets what its caches hold; a request that is under way computes its own again."""
        self.run_to(now_s)
        for machine in range(self._doors.is_up.size):
            lose(self._typed, machine, self._clock_s, True)
        self.collect()

    def set_replicas(self, count: int, *, now_s: float, pool: int = 0) -> None:
        """The first ``count`` replicas of a pool that are up take new requests; others finish what they have."""
        self.run_to(now_s)
        self._doors.want(count, pool)
        self.change(self._doors.opened(self._world))

    def slow(self, replica: int, factor: float) -> None:
        """From its next step on, a replica's steps take ``factor`` times as long as they should."""
        self._doors.check(replica)
        if not 0.0 < factor < inf:
            raise ScenarioError(f"factor: got {factor}; write how many times as long a step takes, such as 2.0.")
        self._world.slowness[replica] = factor

    def adapters(self) -> Ints:
        """Return (engine, adapter, 1 in a batch or 0 waiting) of every unfinished request that chose an adapter."""
        return adapters_now(self._world, self._doors)

    def watch_cache(self) -> CacheWatch:
        """Changes of the prefix caches from the first call on; refused where nothing is shared."""
        if not self._prepared.blocks_each:
            raise ScenarioError("prefix_caching: this service shares no prefixes; leave prefix_caching = false out.")
        if self._watch is None:
            journal = np.zeros(1 + JOURNAL, dtype=np.int64)
            self.change(self._world._replace(memory=self._world.memory._replace(journal=journal)))
            self._watch = CacheWatch(self._prefixes, lambda: self._world)
        return self._watch

    def snapshot(self) -> Snapshot:
        """State of every replica at the clock's moment."""
        return snapshot_of(self._world, self._doors)


def _rehearse(live: Live, can_lose: bool) -> None:
    """All that can happen, once and at no time: whatever compiles does so before anybody waits for it."""
    served, cancelled = (live.submit(now_s=0.0, input_tokens=1, output_tokens=1) for _ in range(2))
    live.cancel(cancelled, now_s=0.0)
    live.advance(inf)
    live.course(served)
    live.set_replicas(1, now_s=0.0)
    if can_lose:
        live.kill(0, now_s=0.0)
        live.revive(0, now_s=0.0)
