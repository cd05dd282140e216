"""The shared blocks of a live run: names of any kind become dense ids, which are taken back when nothing knows them.

An id is in use while an unfinished request names it, or while any pool holds its block on a device or on the host. When
no id is free all of them are looked through; when that frees few, the table is made twice as large. So it holds what
the caches and the requests of a moment hold, however long the run.
"""

from collections.abc import Hashable, Iterable

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.serving.requests import Ints
from orrery.serving.simulation.memory._kernel import ABSENT, Memory
from orrery.serving.simulation.tables._kernel import SimulationState
from orrery.serving.simulation.world import MAX_CACHE_NODES

FIRST_IDS = 4096
"""Ids, and places for the ids of requests, at the start."""


class Prefixes:
    """Which id each name has, and where in ``world.prefix_ids`` each request's ids stand."""

    def __init__(self) -> None:
        self._id_of: dict[Hashable, int] = {}
        self._names: list[Hashable] = [None] * FIRST_IDS
        self._free = list(range(FIRST_IDS))
        self._users = np.zeros(FIRST_IDS, dtype=np.int64)  # unfinished requests that name it
        self._end = 0  # of what is used of prefix_ids
        self.births: Ints = np.zeros(FIRST_IDS, dtype=np.int64)  # when an id got its name: 1, 2, … over all names
        self._num_births = 0

    @property
    def num_names(self) -> int:
        """Names that have an id now."""
        return len(self._id_of)

    def name_of(self, id: int) -> Hashable:
        """The name that an id stands for, or stood for last."""
        return self._names[id]

    def enter(self, world: SimulationState, i: int, names: Iterable[Hashable]) -> SimulationState:
        """The tables with a request's blocks entered."""
        prefix_names = list(names)
        if len(self._free) < len(prefix_names):
            world = self._recycle(world, len(prefix_names))
        if self._end + len(prefix_names) > world.prefix_ids.size:
            world = self._compact(world, len(prefix_names))
        ids = np.array([self._id(name) for name in prefix_names], dtype=np.int64)
        np.add.at(self._users, ids, 1)
        world.prefix_start[i], world.prefix_end[i] = self._end, self._end + ids.size
        world.prefix_ids[self._end : self._end + ids.size] = ids
        self._end += ids.size
        return world

    def leave(self, world: SimulationState, i: int) -> None:
        """A request has ended: it names nothing any more."""
        np.subtract.at(self._users, world.prefix_ids[world.prefix_start[i] : world.prefix_end[i]], 1)
        world.prefix_start[i] = world.prefix_end[i] = 0

    def _id(self, name: Hashable) -> int:
        found = self._id_of.get(name)
        if found is None:
            found = self._id_of[name] = self._free.pop()
            self._names[found] = name
            self._num_births += 1
            self.births[found] = self._num_births
        return found

    def _recycle(self, world: SimulationState, prefix_names: int) -> SimulationState:
        """Take back the ids that nothing knows; where those are few, more ids."""
        memory, size = world.memory, self._users.size
        used = self._users > 0
        used |= (memory.users.reshape(-1, size) != ABSENT).any(axis=0)
        used |= (memory.on_host.reshape(-1, size) != 0).any(axis=0)
        self._free = np.flatnonzero(~used).tolist()
        for k in self._free:
            if self._names[k] is not None:
                del self._id_of[self._names[k]]
                self._names[k] = None
        more = size
        while len(self._free) + more - size < max(prefix_names, more // 4):
            more *= 2
        if more == size:
            return world
        world = world._replace(memory=widened(memory, more))
        self._free += range(size, more)
        self._names += [None] * (more - size)
        self._users = np.pad(self._users, (0, more - size))
        self.births = np.pad(self.births, (0, more - size))
        return world

    def _compact(self, world: SimulationState, prefix_names: int) -> SimulationState:
        """Put the ids of unfinished requests together, in room for as many again."""
        start, end = world.prefix_start, world.prefix_end
        held = np.flatnonzero(end > start)
        lengths = end[held] - start[held]
        first = np.cumsum(lengths) - lengths
        self._end = int(lengths.sum())
        ids = np.zeros(max(FIRST_IDS, 2 * (self._end + prefix_names)), dtype=np.int64)
        for to, i, length in zip(first.tolist(), held.tolist(), lengths.tolist(), strict=True):
            ids[to : to + length] = world.prefix_ids[start[i] : start[i] + length]
        start[held], end[held] = first, first + lengths
        return world._replace(prefix_ids=ids)


def widened(memory: Memory, num_ids: int) -> Memory:
    """The same pools with nodes for more ids; the order of every ring stays."""
    pools, old = memory.capacity.size, memory.num_ids
    if num_ids * pools > MAX_CACHE_NODES:
        raise ScenarioError(
            f"prefix_ids: {num_ids:,} shared blocks on {pools} replicas are more than can be followed "
            f"({MAX_CACHE_NODES:,} in all); use fewer replicas, or prefix_caching = false."
        )
    level = pools * num_ids + memory.num_requests
    blocks = (np.arange(pools)[:, None] * num_ids + np.arange(old)).ravel()
    device = np.concatenate([blocks, pools * num_ids + np.arange(memory.num_requests)])
    to = np.concatenate([device, level + device, 2 * level + np.arange(2 * pools)])
    users, on_host = np.full(pools * num_ids, ABSENT), np.zeros(pools * num_ids, np.int8)
    users[blocks], on_host[blocks] = memory.users, memory.on_host
    node_bytes = np.zeros(level, np.int64)
    node_bytes[device] = memory.node_bytes
    return memory._replace(
        users=users,
        on_host=on_host,
        node_bytes=node_bytes,
        before=_renamed(memory.before, to, 2 * (level + pools)),
        behind=_renamed(memory.behind, to, 2 * (level + pools)),
        num_ids=num_ids,
    )


def _renamed(neighbour: Ints, to: Ints, size: int) -> Ints:
    """Links of a ring under new numbers; new nodes stand alone."""
    found = np.arange(size)
    found[to] = to[neighbour]
    return found
