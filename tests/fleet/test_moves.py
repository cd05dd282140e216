"""Caches on the links between regions, by hand: who asks first goes first, and what does not move holds nobody up."""

import numpy as np
import pytest

from orrery.fleet.regions.moves import HeldElsewhere, WideArea, moves

TRIPS = np.array([[0.0, 0.1], [0.1, 0.0]])


def held(asked_s, again_s, size_bytes=1e9, holder=0, region=1):
    size = len(asked_s)
    return HeldElsewhere(
        asked_s=np.array(asked_s, dtype=np.float64),
        holder=np.full(size, holder),
        region=np.full(size, region),
        size_bytes=np.full(size, float(size_bytes)),
        again_s=np.full(size, again_s) if np.isscalar(again_s) else np.array(again_s),
    )


def area(way="sooner", bytes_per_s=1e9, trips=TRIPS):
    return WideArea(way=way, bytes_per_s=bytes_per_s, round_trip_s=trips)


def test_one_cache_takes_the_round_trip_and_its_bytes():
    found = moves(held([5.0], 2.0), area())
    assert found.move_s == pytest.approx([1.1])  # 0.05 s to ask, 1 s of bytes, 0.05 s for the last of them
    assert found.is_moved.all()
    assert found.busy_s == {(0, 1): pytest.approx(1.0)}


def test_caches_queue_on_a_link_in_the_order_in_which_they_are_asked_for():
    # heard at 0.05 and 0.45 s; the link is free again at 1.05 s, so the second waits 0.6 s
    found = moves(held([0.4, 0.0], 9.0), area())
    assert found.wait_s == pytest.approx([0.6, 0.0])
    assert found.move_s == pytest.approx([1.7, 1.1])
    assert found.busy_s[0, 1] == pytest.approx(2.0)


def test_directions_do_not_hold_each_other_up():
    one, other = held([0.0, 0.0], 9.0), held([0.0, 0.0], 9.0)
    both = HeldElsewhere(
        asked_s=one.asked_s,
        holder=np.array([0, 1]),
        region=np.array([1, 0]),
        size_bytes=one.size_bytes,
        again_s=other.again_s,
    )
    assert moves(both, area()).wait_s == pytest.approx([0.0, 0.0])


def test_what_is_computed_sooner_stays_and_leaves_the_link_free():
    found = moves(held([0.0, 0.1], [1.0, 3.0]), area())
    assert found.is_moved.tolist() == [False, True]
    assert found.wait_s == pytest.approx([0.0, 0.0])
    assert found.busy_s[0, 1] == pytest.approx(1.0)


def test_always_moves_what_takes_longer_and_then_waits_for_it():
    found = moves(held([0.0, 0.1], [1.0, 3.0]), area("always"))
    assert found.is_moved.all()
    assert found.wait_s == pytest.approx([0.0, 0.9])


def test_off_moves_nothing():
    found = moves(held([0.0, 0.1], 9.0), area("off"))
    assert not found.is_moved.any()
    assert not found.busy_s


def test_an_endless_link_takes_the_round_trip_alone_and_a_dead_one_moves_nothing():
    assert moves(held([0.0, 0.0], 1.0), area(bytes_per_s=1e30)).move_s == pytest.approx([0.1, 0.1])
    assert not moves(held([0.0, 0.0], 1.0), area(bytes_per_s=1e-3)).is_moved.any()
