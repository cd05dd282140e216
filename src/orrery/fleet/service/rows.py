"""The loop's tables for requests of days: rows that requests take in batches and give back when they have ended.

A run of millions of requests needs rows only for those that are under way. Requests are written into free rows a batch
at a time, in the order in which they reach the first queue, and what became of them is copied out when rows are needed.
The loop sees the same arrivals in the same order as if every request had a row of its own.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.compiled import converted
from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.fleet.service.request_tables import latencies_since
from orrery.serving.batching import DRAWS
from orrery.serving.requests import Floats, Ints, Requests
from orrery.serving.simulation.prepare import Prepared
from orrery.serving.simulation.rules import ROUTERS
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables
from orrery.serving.simulation.world import Window, build, request_table, time_table
from orrery.serving.simulation.world import reached_s as reached

BATCH = 65_536
"""Requests that are written at a time."""

BY_ROW = ("req", "when", "number", "draws", "key", "links", "due_s", "event_links")
"""Tables with a row a request."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Outcome of every request, in their order; times are nan where something never happened."""

    reached_s: Floats  # the first queue, front end included
    admitted_s: Floats
    first_token_s: Floats
    finish_s: Floats
    status: NDArray[np.int8]  # as the loop names it
    machine: NDArray[np.int32]
    preemptions: NDArray[np.int32]
    cached_tokens: NDArray[np.int32]
    was_lost: Flags  # its replica failed or was taken away
    was_parked: Flags  # no replica was there to take it
    region: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))  # it was sent to; -1: none


class RequestRows:
    """The tables of a run, with the requests that are due soon in them."""

    def __init__(self, service: Service, requests: Requests, prepared: Prepared, seed: int, batch: int = BATCH) -> None:
        self._service, self._requests = service, requests
        n = requests.count
        follows = requests.after.size and bool((requests.after >= 0).any())
        self.is_whole = n <= 2 * batch or bool(follows) or prepared.blocks_each > 0
        self._batch = batch
        self._order, self._enter_s = self._by_arrival() if not self.is_whole else (np.arange(n), np.zeros(0))
        self._draws: Floats | None = None
        first = requests if self.is_whole else _subset(requests, self._order[: 2 * batch])
        world = build(service, first, prepared, seed=seed, window=Window())
        if not self.is_whole:
            if DRAWS in ROUTERS.get(service.router).traits:
                self._draws = stream(seed, "router").random((n, 2))
            world = self._as_batch(world, requests)
        self.world = world
        self.typed: Any = converted(world)
        self.loaded = first.count
        self._is_free = np.zeros(first.count, dtype=np.bool_)
        self._outcome = _empty_outcome(n)
        self.calls = prepared.calls

    def _by_arrival(self) -> tuple[Ints, Floats]:
        """Requests in the order in which they reach the first queue, and when they do."""
        r = self._requests
        reached_s = self._reached_s = reached(self._service, r, has_order=True)
        order = np.lexsort((r.arrive_s, reached_s))
        return order, reached_s[order]

    def _as_batch(self, world: tables.SimulationState, requests: Requests) -> tables.SimulationState:
        """The first tables with the numbers, draws and names of the whole run."""
        count = world.req.shape[0]
        world.number[:] = self._order[:count]
        if self._draws is not None:
            world.draws[:] = self._draws[self._order[:count]]
        sessions, clients = (max(1, int(v.max()) + 1) if v.size else 1 for v in (requests.session, requests.client))
        most = min(requests.count, int(world.lanes[:, tables.MAX_SEQS].max()))
        return world._replace(
            home=np.full(sessions, -1, dtype=np.int64),
            tag=np.zeros(1 + clients),
            seats=np.zeros((*world.seats.shape[:2], most), dtype=np.int64),
        )

    def change(self, **tables_by_name: Any) -> None:
        """Put other tables in the place of some."""
        self.world = self.world._replace(**tables_by_name)
        self.typed = converted(self.world)

    def load(self, until_s: float) -> None:
        """Have every request in the tables that reaches the first queue up to ``until_s``."""
        while not self.is_whole and self.loaded < self._order.size and self._enter_s[self.loaded] <= until_s:
            self._load_batch()

    def _load_batch(self) -> None:
        count = min(self._batch, self._order.size - self.loaded)
        self._collect()
        if int(self._is_free.sum()) < count:
            self._grow(max(self._is_free.size, count))
        rows = np.flatnonzero(self._is_free)[:count]
        which = self._order[self.loaded : self.loaded + count]
        part, w = _subset(self._requests, which), self.world
        w.req[rows] = request_table(self._service, part)
        w.when[rows] = time_table(self._service, part)
        w.when[rows, tables.ENTER] = self._reached_s[which]
        w.number[rows] = which
        if self._draws is not None:
            w.draws[rows] = self._draws[which]
        self._is_free[rows] = False
        ahead = w.order[w.counts[tables.UPCOMING] :]
        w.counts[tables.UPCOMING] = 0
        self.loaded += count
        self.change(order=np.concatenate((ahead, rows)))

    def _grow(self, more: int) -> None:
        """Add free rows."""
        w = self.world
        self.change(
            **{name: _longer(getattr(w, name), more) for name in BY_ROW},
        )
        self._is_free = np.concatenate((self._is_free, np.ones(more, dtype=np.bool_)))

    def _collect(self) -> None:
        """Copy out what became of requests that have ended and hold nothing; their rows are free."""
        w = self.world
        ended = (w.req[:, tables.STATUS] >= tables.DONE) & (w.req[:, tables.BLOCKS] == 0) & ~self._is_free
        rows = np.flatnonzero(ended)
        self._copy_out(rows)
        self._is_free[rows] = True

    def _copy_out(self, rows: Ints) -> None:
        w, out, which = self.world, self._outcome, self.world.number[rows]
        for name, column in (
            ("reached_s", tables.ARRIVED_S),
            ("admitted_s", tables.ADMITTED_S),
            ("first_token_s", tables.FIRST),
            ("finish_s", tables.FINISH),
        ):
            getattr(out, name)[which] = w.when[rows, column]
        for name, column in (
            ("status", tables.STATUS),
            ("machine", tables.MACHINE),
            ("preemptions", tables.PREEMPTED),
            ("cached_tokens", tables.CACHED),
            ("region", tables.REGION),
        ):
            getattr(out, name)[which] = w.req[rows, column]

    def mark(self, rows: Ints, *, lost: bool) -> None:
        """Note that requests were on a lost replica, or found none that takes any."""
        (self._outcome.was_lost if lost else self._outcome.was_parked)[self.world.number[rows]] = True

    def recent(self, since_s: float, region: int = -1) -> tuple[Floats, Floats]:
        """TTFT of requests whose first token came since then, and TPOT of those that ended since (s)."""
        return latencies_since(self.world, self._service, since_s, region)

    def unfinished(self) -> int:
        """Requests that have come or are still to come, and have not ended."""
        live = (self.world.req[:, tables.STATUS] < tables.DONE) & ~self._is_free
        return int(live.sum()) + (0 if self.is_whole else self._order.size - self.loaded)

    def outcome(self) -> Outcome:
        """Outcome of every request up to now."""
        self._copy_out(np.flatnonzero(~self._is_free))
        return replace(self._outcome)


def _longer(table: NDArray[Any], more: int) -> NDArray[Any]:
    fill = np.full((more, *table.shape[1:]), -1 if table.dtype == np.int64 else 0, dtype=table.dtype)
    return np.concatenate((table, fill))


def _subset(requests: Requests, which: Ints) -> Requests:
    """Some of the requests, which follow nobody and share nothing."""
    return Requests(
        arrive_s=requests.arrive_s[which],
        input_tokens=requests.input_tokens[which],
        output_tokens=requests.output_tokens[which],
        session=requests.session[which] if requests.session.size else requests.session,
        client=requests.client[which] if requests.client.size else requests.client,
        model=requests.model[which] if requests.model.size else requests.model,
        adapter=requests.adapter[which] if requests.adapter.size else requests.adapter,
        priority=requests.priority[which] if requests.priority.size else requests.priority,
        origin=requests.origin[which] if requests.origin.size else requests.origin,
    )


def _empty_outcome(count: int) -> Outcome:
    if count > 100_000_000:
        raise ScenarioError(f"requests: {count:,} in one run are more than can be followed.")
    never, none = np.full(count, np.nan), np.zeros(count, dtype=np.int32)
    return Outcome(
        reached_s=never,
        admitted_s=never.copy(),
        first_token_s=never.copy(),
        finish_s=never.copy(),
        status=np.zeros(count, dtype=np.int8),
        machine=none,
        preemptions=none.copy(),
        cached_tokens=none.copy(),
        was_lost=np.zeros(count, dtype=np.bool_),
        was_parked=np.zeros(count, dtype=np.bool_),
        region=np.full(count, -1, dtype=np.int8),
    )
