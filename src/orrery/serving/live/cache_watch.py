"""Changes of the prefix caches of a live run: named blocks that are there now and were not, and the reverse.

A replica has one cache, or one for each of its data-parallel ranks that share experts; they are numbered through. A
block is told by its name, on the device or on the host, once for every cache that holds it. What came and went between
two looks is not told: told changes, put on top of each other, are the cache's content at each look. A look goes through
what the memory wrote down since the last one, or through everything where that was too much.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orrery.serving.live.prefixes import Prefixes
from orrery.serving.requests import Ints
from orrery.serving.simulation.memory._kernel import ABSENT, Memory
from orrery.serving.simulation.tables import _kernel as tables

JOURNAL = 2**16
"""Comings and goings that are written down between two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheChange:
    """Gains and losses of one cache on one level; parents before what follows them."""

    cache: int
    is_host: bool
    stored: list[Hashable]
    removed: list[Hashable]
    is_empty: bool  # the cache holds nothing any more, on any level


class _Place(NamedTuple):
    """Place of a block."""

    pool: int
    is_host: bool
    id: int


class _Found(NamedTuple):
    """A block as it was seen: when it got its name, among all names, and which."""

    birth: int
    name: Hashable


class CacheWatch:
    """Looks at all caches, and remembers what it saw."""

    def __init__(self, prefixes: Prefixes, world: Callable[[], tables.SimulationState]) -> None:
        self._prefixes, self._world = prefixes, world
        self._seen: dict[_Place, _Found] = {}
        self._counts = Counter[int]()  # blocks by pool
        self._num_ids = 0  # of the memory at the last look
        pools: list[int] = np.unique(world().lanes[:, tables.POOL]).tolist()
        self._number_of = {pool: k for k, pool in enumerate(pools)}
        self.num_caches = len(pools)

    def content(self) -> dict[_Place, Hashable]:
        """The names of all blocks that are there now."""
        return {place: found.name for place, found in self._now(_all_places(self._world().memory)).items()}

    def changes(self) -> list[CacheChange]:
        """Changes since the last look; those of devices before those of hosts."""
        memory = self._world().memory
        count, room = int(memory.journal[0]), memory.journal.size - 1
        if not count and memory.num_ids == self._num_ids:
            return []
        if count == room or memory.num_ids != self._num_ids:
            places = {*_all_places(memory), *self._seen}
        else:
            places = _places(np.unique(memory.journal[1 : count + 1]), memory.num_ids)
        memory.journal[0], self._num_ids = 0, memory.num_ids
        return self._told(set(places))

    def _told(self, places: set[_Place]) -> list[CacheChange]:
        """The differences at some places, which are remembered as they are now."""
        now = self._now(places)
        stored = {place: found for place, found in now.items() if self._seen.get(place) != found}
        removed = {p: self._seen[p] for p in places if p in self._seen and self._seen[p] != now.get(p)}
        for place in removed:
            del self._seen[place]
        self._seen |= stored
        self._counts.subtract(place.pool for place in removed)
        self._counts.update(place.pool for place in stored)
        levels = sorted({(place.is_host, place.pool) for place in (*stored, *removed)})
        return [
            CacheChange(
                cache=self._number_of[pool],
                is_host=is_host,
                stored=_names(stored, pool, is_host),
                removed=_names(removed, pool, is_host),
                is_empty=not self._counts[pool],
            )
            for is_host, pool in levels
        ]

    def _now(self, places: Iterable[_Place]) -> dict[_Place, _Found]:
        """Blocks that are at some places now."""
        memory, births = self._world().memory, self._prefixes.births
        found: dict[_Place, _Found] = {}
        for place in places:
            node = place.pool * memory.num_ids + place.id
            if memory.on_host[node] if place.is_host else memory.users[node] != ABSENT:
                found[place] = _Found(int(births[place.id]), self._prefixes.name_of(place.id))
        return found


def _names(found: dict[_Place, _Found], pool: int, is_host: bool) -> list[Hashable]:
    """Names on one level of a pool, as they were given: along each prefix."""
    mine = [block for place, block in found.items() if place.pool == pool and place.is_host == is_host]
    return [block.name for block in sorted(mine, key=lambda block: block.birth)]


def _all_places(memory: Memory) -> list[_Place]:
    """Places of all shared blocks that are there now."""
    device, host = np.flatnonzero(memory.users != ABSENT), np.flatnonzero(memory.on_host)
    return _places(np.concatenate([2 * device, 2 * host + 1]), memory.num_ids)


def _places(entries: Ints, num_ids: int) -> list[_Place]:
    """Entries of the journal as places."""
    pools, ids = np.divmod(entries >> 1, max(1, num_ids))
    return [
        _Place(pool, bool(is_host), k)
        for pool, k, is_host in zip(pools.tolist(), ids.tolist(), (entries & 1).tolist(), strict=True)
    ]
