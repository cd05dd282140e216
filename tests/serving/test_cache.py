"""Pools of blocks against a plain model of them, with a second tier on the host."""

from collections import OrderedDict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.serving.simulation.memory._kernel import (
    found,
    memory_of,
    need_of_found,
    pin,
    publish,
    release,
    room,
    take,
)

BLOCK = 10
HELD = np.arange(40, dtype=np.int64) * BLOCK
IDS = [[0, 1, 2, 3], [0, 1, 4], [0, 5], [6, 7]]
FLAT, START = np.array([x for ids in IDS for x in ids]), np.cumsum([0, *map(len, IDS)])


class Plain:
    """One pool and its host, oldest content first."""

    def __init__(self, capacity, host):
        self.free, self.host_free, self.users = capacity, host, {}
        self.unused, self.host = OrderedDict(), OrderedDict()

    def take(self, amount):
        if self.free + sum(self.unused.values()) < amount:
            return False
        while self.free < amount:
            key, size = next(iter(self.unused.items()))
            if isinstance(key, tuple):
                part = min(size, amount - self.free)
                self.unused[key] -= part
                if not self.unused[key]:
                    del self.unused[key]
                self.free += part
                continue
            del self.unused[key], self.users[key]
            self.free += size
            self._to_host(key)
        self.free -= amount
        return True

    def _to_host(self, key):
        while key not in self.host and self.host_free < BLOCK and self.host:
            self.host.popitem(last=False)
            self.host_free += BLOCK
        if key not in self.host and self.host_free >= BLOCK:
            self.host[key] = BLOCK
            self.host_free -= BLOCK

    def use(self, key):
        self.unused.pop(key, None)
        self.users[key] = self.users.get(key, 0) + 1

    def release(self, request, private, ids):
        if private and (request,) in self.unused:
            self.free += private
        elif private:
            self.unused[(request,)] = private
        for key in reversed(ids):
            self.users[key] -= 1
            if not self.users[key]:
                self.unused[key] = BLOCK


@settings(max_examples=300, deadline=None)
@given(st.integers(3, 12), st.sampled_from([0, 2, 5]), st.data())
def test_a_pool_is_what_a_plain_model_of_it_is(blocks, host_blocks, data):
    m = memory_of(np.array([blocks * BLOCK]), np.array([host_blocks * BLOCK]), 8, len(IDS))
    plain = Plain(blocks * BLOCK, host_blocks * BLOCK)
    running = {}
    for _ in range(data.draw(st.integers(1, 25))):
        r = data.draw(st.integers(0, len(IDS) - 1))
        if r in running:
            total = running.pop(r)
            release(m, 0, r, total * BLOCK, FLAT, START[r], len(IDS[r]))
            plain.release(r, (total - len(IDS[r])) * BLOCK, IDS[r])
        else:
            total = len(IDS[r]) + data.draw(st.integers(0, 2))
            if _start(m, plain, r, total):
                running[r] = total
        _compare(m, plain)
    for r, total in running.items():
        release(m, 0, r, total * BLOCK, FLAT, START[r], len(IDS[r]))
    assert room(m, 0) == m.capacity[0]


def _start(m, plain, r, total):
    """A request takes its blocks, found ones first, computes them all and shares them."""
    hit = found(m, 0, FLAT, START[r], len(IDS[r]))
    expected = 0
    while expected < len(IDS[r]) and (IDS[r][expected] in plain.users or IDS[r][expected] in plain.host):
        expected += 1
    assert hit == expected
    pinned, loaded = need_of_found(m, 0, FLAT, START[r], hit, HELD, 1)
    assert pinned == BLOCK * sum(x in plain.unused for x in IDS[r][:hit])
    assert loaded == BLOCK * sum(x not in plain.users for x in IDS[r][:hit])
    if room(m, 0) - pinned < loaded + (total - hit) * BLOCK:
        return False
    away = [x for x in IDS[r][:hit] if x not in plain.users]
    pin(m, 0, FLAT, START[r], hit, HELD, 1)
    for key in IDS[r][:hit]:
        if key not in away:
            plain.use(key)
    for key in away:
        assert plain.take(BLOCK)
        plain.use(key)
    assert take(m, 0, (total - hit) * BLOCK)
    assert plain.take((total - hit) * BLOCK)
    publish(m, 0, FLAT, START[r], hit, len(IDS[r]), HELD, 1)
    for key in IDS[r][hit:]:
        if key in plain.users:
            plain.free += BLOCK
        plain.use(key)
    return True


def _compare(m, plain):
    assert m.free[0] == plain.free
    assert m.evictable[0] == sum(plain.unused.values())
    assert m.host_free[0] == plain.host_free
    assert {x for x in range(8) if m.users[x] >= 0} == set(plain.users)
    assert {x for x in range(8) if m.on_host[x]} == set(plain.host)
    assert all(m.users[x] == n for x, n in plain.users.items())


def test_what_does_not_fit_changes_nothing():
    m = memory_of(np.array([100]), np.array([0]), 8, 1)
    assert take(m, 0, 60)
    assert not take(m, 0, 50)
    assert m.free[0] == 40
    assert take(m, 0, 40)


def test_the_oldest_is_evicted_first_and_a_prefix_outlives_its_end():
    m = memory_of(np.array([40]), np.array([0]), 8, 4)
    take(m, 0, 40)
    publish(m, 0, FLAT, START[0], 0, 4, HELD, 1)
    release(m, 0, 0, 40, FLAT, START[0], 4)
    assert found(m, 0, FLAT, START[0], 4) == 4
    take(m, 0, 10)
    assert found(m, 0, FLAT, START[0], 4) == 3
    assert m.evictions[0] == 1
