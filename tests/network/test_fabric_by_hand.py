"""Collectives over leaves and spines: two leaves of two hosts, drawn on paper."""

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Link
from orrery.network import on_fabric
from orrery.network.leaf_spine import LeafFlows, assigned, everyone, hashed, ring, sprayed
from orrery.network.on_fabric import Fabric, run

LINK = Link(name="", each_way_bytes_per_s=1e9, latency_s=1e-6, num_devices=0)
FABRIC = Fabric(num_leaves=2, num_spines=2, num_hosts_per_leaf=3, link=LINK)


def test_an_all_to_all_sprayed_over_two_spines():
    """Six hosts, S = 6 MB: a megabyte to each of five others. A leaf sends 3 x 3 flows over 2 links: 4.5 MB a link,
    less than the 5 MB that a host sends. With one spine 9 MB a link, which is more.
    """
    assert FABRIC.num_hosts == 6
    two = run("all_to_all", 6e6, FABRIC, "spray", 3, 0)
    assert (two.busiest_bytes.tolist(), two.host_bytes) == ([4.5e6], 5e6)
    assert two.time_s == pytest.approx([1e-6 + 5e6 / 1e9])
    one = run("all_to_all", 6e6, Fabric(num_leaves=2, num_spines=1, num_hosts_per_leaf=3, link=LINK), "spray", 3, 0)
    assert one.time_s == pytest.approx([1e-6 + 9e6 / 1e9])
    assert not two.is_by_theorem


@pytest.mark.parametrize(("kind", "passes"), [("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1)])
def test_a_ring_of_six(kind, passes):
    """Five steps a pass of a sixth of the buffer; a flow is all that a host sends, and at most 3 leave a leaf."""
    found = run(kind, 6e6, FABRIC, "spray", 4, 0)
    assert found.latency_s == pytest.approx(passes * 5 * 1e-6)
    assert found.host_bytes == pytest.approx(passes * 5e6)
    flows = found.busiest_bytes / found.host_bytes  # over two spines: halves of 1, 2 or 3 flows
    assert found.time_s.size == 4
    assert set(flows.tolist()) <= {0.5, 1.0, 1.5}
    assert found.time_s == pytest.approx(found.latency_s + np.maximum(1.0, flows) * found.host_bytes / 1e9)


def test_a_permutation_of_six_hosts():
    """A host sends all 6 MB to one other; 0 to 3 flows leave a leaf. Sprayed over two spines a link carries halves of
    them; whole flows put two of three on one spine, and two parts each are as even as spraying."""
    sprayed_, whole, halves = (
        run("permutation", 6e6, FABRIC, routing, 40, 0, parts)
        for routing, parts in (("spray", 0), ("singlepath", 1), ("singlepath", 2))
    )
    assert (sprayed_.host_bytes, sprayed_.latency_s) == (6e6, 1e-6)
    leaving = sprayed_.busiest_bytes / 3e6
    assert set(leaving.tolist()) == {0.0, 1.0, 2.0, 3.0}
    assert whole.busiest_bytes == pytest.approx(np.ceil(leaving / 2) * 6e6)
    assert halves.busiest_bytes == pytest.approx(sprayed_.busiest_bytes)
    assert whole.time_s == pytest.approx(1e-6 + np.maximum(6e6, whole.busiest_bytes) / 1e9)


def test_too_many_parts_of_bounded_flows_are_refused(monkeypatch):
    monkeypatch.setattr(on_fabric, "MAX_EDGES", 1)
    with pytest.raises(OutOfRange, match="fewer flow_parts"):
        run("permutation", 6e6, FABRIC, "singlepath", 1, 0, 2)


def test_a_hash_is_drawn_as_often_as_asked_and_is_never_better():
    spread, drawn = (run("all_to_all", 6e6, FABRIC, routing, 5, 0) for routing in ("spray", "ecmp"))
    assert (spread.time_s.size, drawn.time_s.size) == (1, 5)
    assert (drawn.busiest_bytes >= spread.busiest_bytes).all()


def test_too_many_parts_are_answered_by_the_theorem(monkeypatch):
    """18 flows of 9 a leaf over 2 spines: halves, 36 parts. Assigned one by one or by the theorem: 4.5 a link."""
    monkeypatch.setattr(on_fabric, "MAX_EDGES", 36)
    counted = run("all_to_all", 6e6, FABRIC, "singlepath", 1, 0)
    monkeypatch.setattr(on_fabric, "MAX_EDGES", 35)
    proven = run("all_to_all", 6e6, FABRIC, "singlepath", 1, 0)
    assert (counted.is_by_theorem, proven.is_by_theorem) == (False, True)
    assert counted.busiest_bytes == proven.busiest_bytes == pytest.approx([4.5e6])
    assert not run("all_to_all", 6e6, FABRIC, "spray", 1, 0).is_by_theorem


def test_what_a_fabric_does_not_count():
    with pytest.raises(OutOfRange):
        run("broadcast", 1.0, FABRIC, "spray", 1, 0)


def test_flows_of_a_ring_in_order_and_of_everyone():
    """Hosts 0 0 | 1 1 | 2 2 in a ring: one flow leaves each leaf. Everyone: 2 x 4 flows leave each."""
    around = ring(3, 2, 2, None)
    assert sorted(zip(around.sources.tolist(), around.targets.tolist(), strict=True)) == [(0, 1), (1, 2), (2, 0)]
    assert around.most == 1
    every = everyone(3, 2, 2)
    assert (every.sources.size, every.most, sprayed(every)) == (24, 8, 4.0)
    assert (every.sources != every.targets).all()


@pytest.mark.parametrize(("sources", "targets"), [([0, 1, 2], [3, 3, 3]), ([3, 3, 3], [0, 1, 2])])
def test_the_busier_side_of_the_busiest_leaf_counts(sources, targets):
    """Three flows into one leaf, or out of one: three on its links, whichever way; one spine takes all of them."""
    flows = LeafFlows(num_leaves=4, num_spines=1, sources=np.array(sources), targets=np.array(targets))
    assert flows.most == 3
    assert sprayed(flows) == hashed(flows, np.random.default_rng(0)) == assigned(flows) == 3.0


def test_paths_are_exchanged_where_the_first_free_ones_differ():
    """Flows 0->0', 1->1', 0->1', 1->0' over two spines: a square, two colours; the last closes it."""
    square = LeafFlows(num_leaves=4, num_spines=2, sources=np.array([0, 1, 0, 1]), targets=np.array([2, 3, 3, 2]))
    assert assigned(square) == 1.0
    path = LeafFlows(num_leaves=6, num_spines=2, sources=np.array([0, 1, 1, 0]), targets=np.array([3, 4, 3, 4]))
    assert assigned(path) == 1.0
