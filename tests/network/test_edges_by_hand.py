"""Rings on fabrics of several planes, the cheapest route of an exchange, and colours that change places: by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.network import Collective, exchange, leaf_spine, on_fabric, spread
from orrery.network.exchange import ExchangePlan
from orrery.network.group import group_of
from orrery.network.resolve import find
from orrery.network.routing import Copies


def fabric(num_leaves):
    return SimpleNamespace(num_leaves=num_leaves, num_spines=2, num_hosts_per_leaf=4)


@pytest.fixture
def dealt(monkeypatch):
    """Slow-downs of a ring where each plane is dealt the next of some numbers."""

    def make(routing, numbers, num_planes=2, num_draws=2, num_leaves=4):
        left = iter(numbers)
        monkeypatch.setattr(on_fabric, "ROUTINGS", {routing: lambda flows, random: next(left)})
        found = on_fabric.ring_slowdowns(
            fabric(num_leaves), routing, num_planes=num_planes, num_draws=num_draws, seed=0
        )
        assert next(left, None) is None, "every number was dealt"
        return found.tolist()

    return make


def test_a_ring_waits_for_its_slowest_plane(dealt):
    """Two draws of two planes; no plane is faster than a ring that has its links to itself."""
    assert dealt("ecmp", [2.0, 3.0, 4.0, 1.5]) == [3.0, 4.0]
    assert dealt("ecmp", [0.5, 0.25, 0.5, 2.0]) == [1.0, 2.0]


def test_other_routings_deal_alike_in_every_plane(dealt):
    assert dealt("sprayed", [2.0, 3.0]) == [2.0, 3.0]


def test_a_ring_below_one_leaf_meets_nobody(dealt):
    assert dealt("ecmp", [], num_leaves=1) == [1.0, 1.0]


def copies(inside=1.0, across=0.0):
    return Copies(inside_ratio=inside, across_ratio=across, local_ratio=2.0, num_out_steps=3, transport="")


DEVICE = SimpleNamespace(
    scaleup=SimpleNamespace(each_way_bytes_per_s=100.0),
    scaleout=SimpleNamespace(each_way_bytes_per_s=10.0, latency_s=0.5),
    num_compute_units=8,
)
ROUTING = SimpleNamespace(group=SimpleNamespace(num_devices=4, crowding_ratio=2.0), num_experts=8)
CONSTANTS = {"launch_s": 1.0, "expert_s": 0.25, "wire_rate_frac": 0.5, "token_s": 4.0, "staging_ratio": 0.5}


def one(**ratios):
    return exchange._one("a", copies(**ratios), ROUTING, "moe_dispatch", 6.0, DEVICE, CONSTANTS, 0)


def test_a_route_by_hand():
    """Inside 3 copies and half of the 2 handled, twice as crowded: 8 x 6 bytes at half of 100 bytes/s; across 1 x 6 at
    10. Eight experts take eight of the device's units, and the roofs are those of the bare links."""
    found = one(inside=3.0, across=1.0)
    assert found.latency_s == 1 + 8 * 0.25 + 3 * 0.5
    assert found.slope_s_per_tokens == 4 / 8 + 8 * 6 / 50
    assert found.roof_s_per_tokens == pytest.approx(6 * max(3 * 2 / 100, 1 / 10))
    assert found.sent_bytes_per_tokens == 4 * 6
    near = one(inside=8.0, across=1.0)  # 16 crowded copies at 100 bytes/s are slower than one at 10
    assert near.roof_s_per_tokens == pytest.approx(6 * 8 * 2 / 100)
    far = one(inside=0.0, across=4.0)
    assert far.slope_s_per_tokens == pytest.approx(4 / 8 + 4 * 6 / 10)


def test_the_route_that_costs_least_a_token_is_taken(monkeypatch):
    plans = {
        name: ExchangePlan(
            latency_s=latency_s,
            slope_s_per_tokens=slope,
            exponent_ratio=1.0,
            roof_s_per_tokens=0.0,
            sent_bytes_per_tokens=0.0,
            name=name,
        )
        for name, latency_s, slope in (("direct", 0.0, 3.0), ("by node", 9.0, 2.0), ("both", 0.0, 4.0))
    }
    monkeypatch.setattr(exchange, "routes", lambda routing, c: [(name, copies()) for name in plans])
    monkeypatch.setattr(exchange, "_one", lambda name, *_: plans[name])
    assert exchange.exchange_plan(ROUTING, "moe_dispatch", 6.0, DEVICE, CONSTANTS).name == "by node"
    alone = SimpleNamespace(group=SimpleNamespace(num_devices=1))
    assert exchange.exchange_plan(alone, "moe_dispatch", 6.0, DEVICE, CONSTANTS).name == "none"


def test_colours_change_places_along_a_path_that_begins_with_the_first_edge():
    """Edge 0 from leaf 0 to leaf 0 bears colour 0, edge 1 from leaf 0 to leaf 1 colour 1: from the down side of leaf 0
    on, both change; an edge that is not on the path stays."""
    ends = np.array([[0, 0, 1], [2, 3, 3]])
    colours = np.array([0, 1, 0])
    edge_at = np.full((4, 2), -1)
    for edge, colour in enumerate(colours[:2]):
        edge_at[ends[:, edge], colour] = edge
    leaf_spine._flip(2, 0, 1, edge_at, ends, colours)
    assert colours.tolist() == [1, 0, 0]
    assert edge_at.tolist() == [[1, 0], [-1, -1], [-1, 0], [1, -1]]


def test_two_devices_exchange_and_one_does_not(monkeypatch):
    plan = one(inside=1.0)
    monkeypatch.setattr(exchange, "routes", lambda routing, c: [("a", copies())])
    for num_devices, name in ((1, "none"), (2, "a")):
        routing = SimpleNamespace(group=SimpleNamespace(num_devices=num_devices, crowding_ratio=2.0), num_experts=8)
        assert exchange.exchange_plan(routing, "moe_dispatch", 6.0, DEVICE, CONSTANTS).name == name
    assert exchange.exchange_plan(ROUTING, "all_reduce", 6.0, DEVICE, CONSTANTS).name == "none"
    assert plan.name == "a"


def test_every_third_device_of_eight_is_two_of_a_node(make_device):
    device = make_device()
    found = [group_of("all_to_all", 16, 8, device, stride=stride).per_node for stride in (1, 2, 3, 8, 9)]
    assert found == [8, 4, 2, 1, 1]
    assert group_of("all_to_all", 2, 8, device).per_node == 2


def test_edges_at_one_leaf_bear_different_colours():
    """Two edges into leaf 0, the first of them in the way of the second."""
    into = leaf_spine._coloured(np.array([0, 1]), np.array([0, 0]), 2, 2)
    assert sorted(into.tolist()) == [0, 1]
    both = leaf_spine._coloured(np.array([0, 1, 0]), np.array([0, 0, 1]), 2, 2).tolist()
    assert both[0] not in (both[1], both[2])


def test_parts_of_flows_are_counted_before_they_are_placed(monkeypatch):
    """Four flows in two parts each are eight; in three they are twelve, and no flow needs more than four parts."""
    monkeypatch.setattr(on_fabric, "MAX_EDGES", 8)
    monkeypatch.setattr(on_fabric, "parts_needed", lambda flows: 4)
    monkeypatch.setattr(on_fabric, "assigned", lambda flows, parts: float(parts))
    four, two = (SimpleNamespace(sources=np.zeros(size)) for size in (4, 2))
    assert on_fabric._in_parts(2, four, None) == 2.0
    assert on_fabric._in_parts(99, two, None) == 99.0
    with pytest.raises(OutOfRange, match="more than 8 parts of flows"):
        on_fabric._in_parts(3, four, None)


def collective(num_devices, library=""):
    return Collective(
        kind="all_reduce", num_devices=num_devices, message_bytes=1e6, devices_per_node=8, library=library
    )


def test_intervals_widen_between_nodes_and_with_constants_of_others(make_device):
    """In log space: twice between nodes; 1.3 times where another library's constants are taken."""
    device = make_device()
    within = spread(collective(8), device)
    across = spread(collective(16), device)
    assert np.log(across.high_80_ratio) == pytest.approx(2.0 * np.log(within.high_80_ratio))
    assert np.log(across.low_95_ratio) == pytest.approx(2.0 * np.log(within.low_95_ratio))
    measured, borrowed = find(device, "all_reduce", "nccl"), find(device, "all_reduce", "nobody's")
    assert within == measured.spread
    assert np.log(borrowed.spread.high_80_ratio) == pytest.approx(1.3 * np.log(measured.spread.high_80_ratio))
