"""Queues leave in order, and the clock names the earliest machine."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.engine.queue._kernel import clock_of, popped, pushed, removed, set_moment

KEYS = st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0, -3.0]), min_size=1, max_size=40)


@settings(deadline=None)
@given(KEYS, st.data())
def test_a_queue_leaves_by_key_then_by_rank(keys, data):
    n = len(keys)
    ranks = np.array(data.draw(st.permutations(range(n))))
    stored, links = np.zeros(n), np.full((n, 3), -1)
    root, waiting, left = -1, [], []
    for item, key in enumerate(keys):
        root = pushed(root, item, key, stored, links, ranks)
        waiting.append((key, ranks[item], item))
        if waiting and data.draw(st.booleans()):
            first = min(waiting) if data.draw(st.booleans()) else data.draw(st.sampled_from(waiting))
            assert root == min(waiting)[-1]
            root = removed(root, first[-1], stored, links, ranks)
            waiting.remove(first)
            left.append(first[-1])
    while root >= 0:
        assert root == min(waiting)[-1]
        waiting.remove(min(waiting))
        left.append(root)
        root = popped(root, stored, links, ranks)
    assert not waiting
    assert sorted(left) == list(range(n))


def test_two_queues_share_the_arrays():
    keys, links, ranks = np.zeros(4), np.full((4, 3), -1), np.arange(4)
    a = pushed(pushed(-1, 0, 5.0, keys, links, ranks), 1, 4.0, keys, links, ranks)
    b = pushed(pushed(-1, 2, 1.0, keys, links, ranks), 3, 0.5, keys, links, ranks)
    assert (a, b) == (1, 3)
    assert removed(a, 0, keys, links, ranks) == 1
    assert popped(a, keys, links, ranks) == -1
    assert popped(b, keys, links, ranks) == 2


@settings(deadline=None)
@given(st.integers(1, 9), st.lists(st.tuples(st.integers(0, 8), st.floats(0, 10)), max_size=30))
def test_the_clock_names_the_earliest(size, changes):
    moments, winners = clock_of(size)
    now = [np.inf] * size
    for machine, moment in changes:
        if machine < size:
            set_moment(moments, winners, machine, moment)
            now[machine] = moment
            assert winners[1] == now.index(min(now))
