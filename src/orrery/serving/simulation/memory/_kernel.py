# pyright: reportArgumentType=false
"""Pools of cache blocks, and the blocks that requests share.

A sequence of b blocks holds ``held[b]`` bytes (layers with a window, or a state, do not grow for ever, so blocks differ
in size). Bytes of a pool are free, taken, or evictable: nobody uses them now, but their content may be asked for again.

Evictable content stands in one queue a pool, oldest first, as nodes of a doubly linked ring: one node a shared block
(``pool x ids + id``), one a finished request for what it alone had (``pools x ids + request``). Taking bytes uses free
ones first, then evicts from the front. What leaves a device may stay on the host: a second set of nodes, ``level``
further on, with rings of its own. Blocks are released last first, so that a prefix outlives what follows it.
"""

from typing import NamedTuple

import numpy as np

from orrery.base.compiled import Bytes, Ints

ABSENT = -1


class Memory(NamedTuple):
    """All pools and their shared blocks."""

    free: Ints  # bytes by pool
    capacity: Ints
    evictable: Ints  # bytes by pool that eviction would free
    host_free: Ints  # bytes by pool of the tier on the host; 0 = no such tier
    users: Ints  # by pool and id: requests that use the block, 0 = evictable, ABSENT
    on_host: Bytes  # by pool and id
    node_bytes: Ints
    before: Ints  # rings: nodes of both levels, then a sentinel for each pool and level
    behind: Ints
    num_ids: int
    num_requests: int
    evictions: Ints  # (1,): blocks that left a device to make room
    journal: Ints  # how many of the entries behind it are written: 2 x node, + 1 on the host; of length 1: none are


def memory_of(capacity: Ints, host_capacity: Ints, num_ids: int, num_requests: int) -> Memory:
    """Empty pools of ``capacity`` bytes each."""
    pools = capacity.size
    level = pools * num_ids + num_requests if num_ids else 0
    ring = 2 * level + 2 * pools
    before, behind = np.arange(ring), np.arange(ring)
    return Memory(
        capacity.copy(),
        capacity,
        np.zeros(pools, np.int64),
        host_capacity.copy(),
        np.full(pools * num_ids, ABSENT, np.int64),
        np.zeros(pools * num_ids, np.int8),
        np.zeros(level, np.int64),
        before,
        behind,
        num_ids,
        num_requests,
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
    )


def _note(m: Memory, node: int, is_host: int) -> None:
    """Write down that a shared block came or went, as long as there is room for it."""
    if m.journal[0] < m.journal.size - 1:
        m.journal[0] += 1
        m.journal[m.journal[0]] = 2 * node + is_host


def _unlink(m: Memory, node: int) -> None:
    before, behind = m.before[node], m.behind[node]
    m.behind[before] = behind
    m.before[behind] = before
    m.before[node] = m.behind[node] = node


def _append(m: Memory, sentinel: int, node: int) -> None:
    last = m.before[sentinel]
    m.behind[last] = node
    m.before[node] = last
    m.behind[node] = sentinel
    m.before[sentinel] = node


def room(m: Memory, pool: int) -> int:
    """Bytes that could be taken now."""
    return m.free[pool] + m.evictable[pool]


def take(m: Memory, pool: int, amount: int) -> bool:
    """Take ``amount`` bytes, evicting the oldest content as needed; False (and nothing changes) if there is no room."""
    if m.free[pool] + m.evictable[pool] < amount:
        return False
    sentinel = 2 * m.node_bytes.size + pool
    while m.free[pool] < amount:
        node = m.behind[sentinel]
        size = m.node_bytes[node]
        if node >= m.capacity.size * m.num_ids:  # what one request alone had: as much as is needed
            size = min(size, amount - m.free[pool])
            m.node_bytes[node] -= size
            if m.node_bytes[node] == 0:
                _unlink(m, node)
        else:
            _unlink(m, node)
            m.users[node] = ABSENT
            _note(m, node, 0)
            m.evictions[0] += 1
            _to_host(m, pool, node, size)
        m.free[pool] += size
        m.evictable[pool] -= size
    m.free[pool] -= amount
    return True


def _to_host(m: Memory, pool: int, node: int, size: int) -> None:
    """Keep a block that leaves the device, pushing out the oldest on the host."""
    if m.on_host[node]:
        return
    level, sentinel = m.node_bytes.size, 2 * m.node_bytes.size + m.capacity.size + pool
    while m.host_free[pool] < size:
        oldest = m.behind[sentinel]
        if oldest == sentinel:
            return
        _unlink(m, oldest)
        m.on_host[oldest - level] = 0
        _note(m, oldest - level, 1)
        m.host_free[pool] += m.node_bytes[oldest - level]
    m.on_host[node] = 1
    _note(m, node, 1)
    m.host_free[pool] -= size
    _append(m, sentinel, node + level)


def found(m: Memory, pool: int, ids: Ints, first: int, count: int) -> int:
    """How many leading ones of ``count`` ids, from ``first`` on, are on the device or on the host."""
    n = 0
    while n < count:
        node = pool * m.num_ids + ids[first + n]
        if m.users[node] == ABSENT and not m.on_host[node]:
            break
        n += 1
    return n


def need_of_found(
    m: Memory, pool: int, ids: Ints, first: int, count: int, held: Ints, blocks_each: int
) -> tuple[int, int]:
    """Bytes of the first ``count`` ids that pinning takes from the evictable ones, and those to load from the host."""
    pinned = loaded = 0
    for k in range(count):
        node = pool * m.num_ids + ids[first + k]
        size = held[(k + 1) * blocks_each] - held[k * blocks_each]
        if m.users[node] == ABSENT:
            loaded += size
        elif m.users[node] == 0:
            pinned += size
    return pinned, loaded


def pin(m: Memory, pool: int, ids: Ints, first: int, count: int, held: Ints, blocks_each: int) -> None:
    """Use the first ``count`` ids, which are there; those on the host come back (their room was checked before)."""
    for k in range(count):
        node = pool * m.num_ids + ids[first + k]
        if m.users[node] == 0:
            _unlink(m, node)
            m.evictable[pool] -= m.node_bytes[node]
            m.users[node] = 1
        elif m.users[node] > 0:
            m.users[node] += 1
    for k in range(count):
        node = pool * m.num_ids + ids[first + k]
        if m.users[node] == ABSENT:
            size = held[(k + 1) * blocks_each] - held[k * blocks_each]
            take(m, pool, size)
            m.node_bytes[node] = size
            m.users[node] = 1
            _note(m, node, 0)


def publish(m: Memory, pool: int, ids: Ints, first: int, begin: int, end: int, held: Ints, blocks_each: int) -> None:
    """Blocks ``begin`` to ``end`` of a sequence are computed: share them. One that somebody else shared meanwhile is
    used instead, and the bytes of our copy are free again."""
    for k in range(begin, end):
        node = pool * m.num_ids + ids[first + k]
        size = held[(k + 1) * blocks_each] - held[k * blocks_each]
        if m.users[node] == ABSENT:
            m.node_bytes[node] = size
            m.users[node] = 1
            _note(m, node, 0)
        else:
            if m.users[node] == 0:
                _unlink(m, node)
                m.evictable[pool] -= m.node_bytes[node]
            m.users[node] += 1
            m.free[pool] += size


def release(m: Memory, pool: int, request: int, amount: int, ids: Ints, first: int, shared: int) -> None:
    """Give back ``amount`` bytes in all: ``shared`` leading ids that others may still use, and the rest."""
    if m.num_ids == 0:
        m.free[pool] += amount
        return
    private = amount
    for k in range(shared):
        private -= m.node_bytes[pool * m.num_ids + ids[first + k]]
    sentinel, node = 2 * m.node_bytes.size + pool, m.capacity.size * m.num_ids + request
    if private > 0:
        if m.before[node] != node:  # its node still stands for what it left when it was preempted or moved
            m.free[pool] += private
        else:
            m.node_bytes[node] = private
            _append(m, sentinel, node)
            m.evictable[pool] += private
    for k in range(shared - 1, -1, -1):
        node = pool * m.num_ids + ids[first + k]
        m.users[node] -= 1
        if m.users[node] == 0:
            m.evictable[pool] += m.node_bytes[node]
            _append(m, sentinel, node)


def forget(m: Memory, pool: int) -> None:
    """A pool that nobody uses any more loses its content, on the device and on the host."""
    level = m.node_bytes.size
    device, host = 2 * level + pool, 2 * level + m.capacity.size + pool
    while m.behind[device] != device:
        _unlink(m, m.behind[device])
    for node in range(pool * m.num_ids, (pool + 1) * m.num_ids):
        if m.users[node] != ABSENT:
            _note(m, node, 0)
        m.users[node] = ABSENT
    m.free[pool], m.evictable[pool] = m.capacity[pool], 0
    while m.behind[host] != host:
        node = m.behind[host] - level
        _unlink(m, m.behind[host])
        m.on_host[node] = 0
        _note(m, node, 1)
        m.host_free[pool] += m.node_bytes[node]
