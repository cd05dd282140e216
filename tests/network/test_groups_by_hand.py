"""Who takes part, how the links are shared, and what one plan costs: worked out on a few devices."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.network import Collective, predict, spread
from orrery.network.collective import coefficients
from orrery.network.group import Group, group_of
from orrery.network.plan import Candidate, _candidate, candidates, undominated
from orrery.network.resolve import VENDOR_LIBRARY, _is_same
from orrery.network.routing import Routing
from orrery.network.techniques import hierarchical, in_switch, one_shot, pairwise, torus_ring, tree
from orrery.network.traffic import Traffic

FAST, SLOW = 400e9, 50e9  # bytes/s of the links of the fixture's device


def test_nodes_are_counted_whole_and_a_mesh_leaves_links_idle():
    """13 devices in nodes of 4 touch 4 nodes. On a mesh of 7 links, 3 members use 2 of them: 3.5 times less."""
    assert Group(kind="all_reduce", num_devices=13, per_node=4).num_nodes == 4
    assert Group(kind="all_reduce", num_devices=12, per_node=4).num_nodes == 3
    mesh = {"kind": "all_reduce", "topology": "mesh", "links": 7}
    crowding = [Group(num_devices=n, per_node=g, **mesh).crowding_ratio for n, g in ((3, 8), (16, 8), (16, 3), (1, 8))]
    assert crowding == [3.5, 1.0, 3.5, 1.0]
    assert Group(kind="all_reduce", num_devices=3, per_node=8, topology="switch", links=7).crowding_ratio == 1.0


@pytest.mark.parametrize(
    ("link_devices", "description", "stride", "n", "per_node"),
    [
        (8, 0, 1, 16, 8),  # the device's own
        (8, 4, 1, 16, 4),  # as told
        (8, 0, 1, 2, 2),  # no more than take part
        (8, 0, 2, 16, 4),  # every second device of eight
        (8, 0, 16, 4, 1),  # fewer than one of a node: each alone
        (16, 4, 1, 64, 4),  # sixteen may stand in one chassis, so what is told holds
        (17, 4, 1, 64, 17),  # seventeen may not: the link runs between chassis
    ],
)
def test_how_many_of_a_group_share_a_fast_domain(make_device, link_devices, description, stride, n, per_node):
    device = make_device(num_devices=link_devices)
    assert group_of("all_reduce", n, description, device, stride=stride).per_node == per_node


def test_only_a_bus_keeps_devices_from_each_others_memory(make_device):
    switch, bus = make_device(), make_device(topology="bus")
    assert group_of("all_reduce", 4, 0, switch).has_peer_to_peer
    assert not group_of("all_reduce", 4, 0, bus).has_peer_to_peer
    assert group_of("all_reduce", 4, 0, bus, has_peer_to_peer=True).has_peer_to_peer
    assert group_of("all_reduce", 4, 0, bus).links == 7


@pytest.mark.parametrize(("n", "per_node", "times"), [(2, 8, 1.0), (4, 8, 4.0), (8, 8, 16.0), (16, 8, 16.0)])
def test_copies_through_the_hosts_memory_crowd_as_the_square(make_device, n, per_node, times):
    """Pairs have a path each; of n devices in a box n / 2 pairs share it: (n / 2)^2 with a contention of 2."""
    constants = {"launch_s": 0.0, "bulk_step_s": 0.0, "bulk_rate_frac": 1.0, "contention_ratio": 2.0}
    group = Group(kind="all_gather", num_devices=n, per_node=per_node, topology="bus", has_peer_to_peer=False)
    (ring,) = [c for c in candidates(group, make_device(), constants) if c.name == "ring, bulk"]
    far = (n - 1) / n / per_node / SLOW if n > per_node else 0.0
    assert ring.slope_s_per_bytes == pytest.approx(max((n - 1) / n * times / FAST, far))


def test_constants_that_were_not_measured_are_their_neutral_values(make_device):
    """Two nodes of two, all-gather round a ring: 2 hops inside, 1 across (5 us, the link's own), 3/4 S inside over
    400 GB/s and 3/8 S across over 50 GB/s, the slower. No start, no peers, nothing staged, no cut into pieces.
    """
    group = Group(kind="all_gather", num_devices=4, per_node=2)
    constants = {"launch_s": 1e-6, "bulk_step_s": 1e-7, "bulk_rate_frac": 1.0}
    (ring,) = [c for c in candidates(group, make_device(), constants) if c.name == "ring, bulk"]
    assert ring.latency_s == pytest.approx(1e-6 + 2 * 1e-7 + 5e-6)
    assert ring.slope_s_per_bytes == ring.roof_s_per_bytes == pytest.approx(3 / 8 / SLOW)
    assert ring.root_s2_per_bytes == 0.0
    assert ring.wire_ratio == pytest.approx(3 / 4 + 3 / 8)
    one = Group(kind="all_reduce", num_devices=4, per_node=4)
    fused = {"launch_s": 1e-6, "one_shot_step_s": 1e-7, "one_shot_rate_frac": 1.0}
    (shot,) = [c for c in candidates(one, make_device(), fused) if c.name == "one-shot"]
    assert shot.latency_s == pytest.approx(1e-6 + 1e-7)


def _line(latency_s, slope, root=0.0):
    return Candidate(
        name="",
        latency_s=latency_s,
        slope_s_per_bytes=slope,
        root_s2_per_bytes=root,
        roof_s_per_bytes=0.0,
        wire_ratio=0.0,
    )


def test_what_is_worse_at_every_size_is_left_out():
    quick, wide, worse = _line(1.0, 3.0), _line(2.0, 1.0), _line(2.0, 2.0, 1.0)
    assert undominated((worse, wide, quick, quick)) == (quick, wide)
    rooted = _line(1.0, 3.0, 4.0)
    assert undominated((rooted, quick)) == (quick,)
    assert rooted.time_s(9.0) == 1.0 + 27.0 + 6.0


@pytest.mark.parametrize("topology", ["switch", "mesh", "torus-2d", "torus-3d"])
def test_two_neighbours_use_the_link_between_them(topology):
    """On a switch the whole rate; on a mesh of 7 links one of them; on a torus one of two directions a dimension."""
    pair = Group(kind="send_recv", num_devices=2, per_node=2, topology=topology, links=7)
    traffic = pairwise.rule(pair)
    assert (traffic.num_steps, traffic.num_out_steps, traffic.out_ratio) == (1, 0, 0.0)
    assert traffic.wire_ratio == {"switch": 1.0, "mesh": 7.0, "torus-2d": 4.0, "torus-3d": 6.0}[topology]
    across = pairwise.rule(Group(kind="send_recv", num_devices=2, per_node=1, topology=topology, links=7))
    assert (across.num_steps, across.wire_ratio, across.num_out_steps, across.out_ratio) == (0, 0.0, 1, 1.0)


def test_all_to_all_on_a_torus_and_on_a_mesh():
    """A torus of 8 x 8: 2 x 8 / 4 = 4 hops a byte; of 2 x 2 one hop. A mesh of 7 links, 3 members: 3.5 times 2/3."""
    hops = {n: pairwise.rule(_all_to_all(n, n, topology="torus-2d")).wire_ratio * n / (n - 1) for n in (4, 64)}
    assert hops == {4: pytest.approx(1.0), 64: pytest.approx(4.0)}
    assert pairwise.rule(_all_to_all(3, 3, topology="mesh", links=7)).wire_ratio == pytest.approx(2 / 3 * 3.5)
    alone, inside, both = (pairwise.rule(_all_to_all(4, g)) for g in (1, 4, 2))
    assert [(t.num_steps, t.num_out_steps) for t in (alone, inside, both)] == [(0, 1), (1, 0), (1, 1)]


def _all_to_all(n, per_node, **more):
    return Group(kind="all_to_all", num_devices=n, per_node=per_node, **more)


def test_torus_rings_stay_in_one_torus_of_more_than_one_dimension():
    def rule(**more):
        return torus_ring.rule(Group(kind="all_gather", **more))

    assert rule(num_devices=16, per_node=16, topology="torus-2d").num_steps == 2 * 3
    assert rule(num_devices=16, per_node=64, topology="torus-2d").num_steps == 2 * 3
    assert rule(num_devices=17, per_node=17, topology="torus-2d").num_steps == 2 * 4  # a box of 5 x 5 at least
    assert rule(num_devices=32, per_node=16, topology="torus-2d") is None
    assert rule(num_devices=16, per_node=16, topology="switch") is None
    assert rule(num_devices=16, per_node=16, topology="torus-3d").wire_ratio == pytest.approx(15 / 16)


def test_trees_and_switches_between_nodes():
    """Five nodes of four: 3 levels. A sum goes up and down both (2 x 3 inside, 6 across), a broadcast only down."""
    up, down = (tree.rule(Group(kind=kind, num_devices=20, per_node=4)) for kind in ("all_reduce", "broadcast"))
    assert (up.num_steps, up.num_out_steps, up.wire_ratio, up.out_ratio) == (6, 6, 2, 2.0 / 4)
    assert (down.num_steps, down.num_out_steps, down.wire_ratio, down.out_ratio) == (3, 3, 1, 1.0 / 4)
    assert tree.rule(Group(kind="all_reduce", num_devices=4, per_node=4)) is None
    assert tree.rule(Group(kind="all_reduce", num_devices=5, per_node=1)).wire_ratio == 0
    switch = in_switch.rule(Group(kind="all_reduce", num_devices=12, per_node=4, has_reduction=True))
    assert (switch.num_steps, switch.num_out_steps) == (2, 4)  # ceil(log2 3) up, and as many down
    assert (switch.wire_ratio, switch.staged_ratio) == (1.25, 0.25)
    assert switch.out_ratio == pytest.approx(1.5 / 4)  # three nodes send 3/2 S at most
    assert in_switch.rule(Group(kind="all_reduce", num_devices=8, per_node=2, has_reduction=True)) is None


def test_a_byte_is_something_and_a_plan_of_one_is_nothing(make_device):
    """One byte pays all latencies; coefficients of a group of one have no rows."""
    device = make_device()
    byte, kilobyte = (predict(Collective(kind="all_gather", num_devices=8, message_bytes=s), device) for s in (1, 1e3))
    assert 0.0 < byte.time_s < kilobyte.time_s
    host_s, rows = coefficients(Collective(kind="all_gather", num_devices=1, message_bytes=0), device)
    assert (host_s, rows.shape) == (0.0, (0, 3))
    host_s, rows = coefficients(Collective(kind="all_gather", num_devices=8, message_bytes=0), device)
    size = 1e6
    least = min(a + b * size + math.sqrt(c * size) for a, b, c in rows)
    assert predict(Collective(kind="all_gather", num_devices=8, message_bytes=size), device).time_s == least


def test_every_second_device_of_eight_makes_nodes_of_four(make_device):
    """Without a word the stride is one: eight neighbours share a node, and the same eight by twos take two."""
    device = make_device()
    plain, one, two, four = (
        predict(Collective(kind="all_gather", num_devices=8, message_bytes=1e9, **more), device).time_s
        for more in ({}, {"stride": 1}, {"stride": 2}, {"devices_per_node": 4})
    )
    assert plain == one < two == four


@pytest.mark.parametrize(("n", "log_widths"), [(8, 1.0), (12, 1.5), (16, 2.0)])
def test_how_much_wider_an_interval_becomes(make_device, n, log_widths):
    """Measured 0.9 to 1.1 in a node of eight with up to eight devices. Twelve in one domain: log widths x 1.5; sixteen
    in two nodes: x 2.
    """
    device = make_device(num_devices=12 if n == 12 else 8)
    size = 12 if n == 12 else 0
    found = spread(Collective(kind="all_gather", num_devices=n, message_bytes=1e6, devices_per_node=size), _to(device))
    assert math.log(found.high_80_ratio) == pytest.approx(log_widths * math.log(1.1))
    assert math.log(found.low_80_ratio) == pytest.approx(log_widths * math.log(0.9))


def _to(device, most=8.0):
    found = {key: replace(c, range={"num_devices": (2.0, most)}) for key, c in device.calibrations.items()}
    return replace(device, calibrations=found)


def test_hierarchies_on_links_that_are_shared():
    """Two domains of four, all-gather: 3/4 S inside, on a torus through one of two dimensions, on a mesh through 3 of 7
    links; 1/2 of S/4 across.
    """
    torus, mesh = (
        hierarchical.rule(Group(kind="all_gather", num_devices=8, per_node=4, topology=topology, links=7))
        for topology in ("torus-2d", "mesh")
    )
    assert (torus.wire_ratio, torus.num_steps) == (3 / 4 * 2, 3)
    assert mesh.wire_ratio == pytest.approx(3 / 4 * 7 / 3)
    assert (mesh.out_ratio, mesh.num_out_steps) == (1 / 2 / 4, 1)


def test_in_one_node_nothing_crosses_the_network():
    switch = in_switch.rule(Group(kind="all_reduce", num_devices=4, per_node=4, has_reduction=True))
    assert (switch.num_out_steps, switch.out_ratio) == (0, 0.0)


@pytest.mark.parametrize("size", [0, np.array([0.0, 1e6])], ids=["number", "array"])
def test_nothing_is_sent_in_no_time(make_device, size):
    found = predict(Collective(kind="all_gather", num_devices=8, message_bytes=size), make_device())
    parts = [np.ravel(part)[0] for part in (found.time_s, found.wire_s, found.latency_s, found.sent_bytes)]
    assert parts == [0.0, 0.0, 0.0, 0.0]


def test_a_group_of_the_devices_own_chassis():
    """Where nobody says how many share a chassis it is the device's own number, and one where it states none."""
    h100 = get_device("h100-sxm")
    alone = replace(h100, devices_per_node=0)
    assert [group_of("all_reduce", 8, n, h100).per_node for n in (0, 4, 8)] == [8, 4, 8]
    assert [group_of("all_reduce", 8, n, alone).per_node for n in (0, 2)] == [1, 2]
    assert group_of("all_reduce", 8, 0, alone).num_nodes == 8


def test_a_shot_at_every_peer_crosses_each_ring_of_a_torus():
    """Three others' buffers: 3 S over a switch, over a mesh of seven links of which three are used 7 / 3 as much, and
    once along each dimension of a torus."""
    sent = {
        topology: one_shot.rule(Group(kind="all_reduce", num_devices=4, per_node=8, topology=topology, links=7))
        for topology in ("switch", "mesh", "torus-2d", "torus-3d")
    }
    assert {name: traffic.wire_ratio for name, traffic in sent.items()} == {
        "switch": 3.0,
        "mesh": pytest.approx(7.0),
        "torus-2d": 6.0,
        "torus-3d": 9.0,
    }
    assert {traffic.num_peers for traffic in sent.values()} == {3}


def test_what_sends_nothing_inside_costs_nothing_inside():
    """All of it between nodes: its bytes over the outer link, and none over the inner one, staged or not."""
    device = SimpleNamespace(
        scaleup=SimpleNamespace(each_way_bytes_per_s=100.0),
        scaleout=SimpleNamespace(each_way_bytes_per_s=1e3, latency_s=0.5),
    )
    constants = {
        "bulk_rate_frac": 0.5,
        "bulk_step_s": 2.0,
        "launch_s": 1.0,
        "staging_ratio": 3.0,
        "scaleout_step_s": 0.25,
    }
    outside = Traffic(num_steps=0, wire_ratio=0.0, num_out_steps=4, out_ratio=0.1)
    found = _candidate("ring", outside, "bulk", device, constants, 1.0)
    assert (found.slope_s_per_bytes, found.roof_s_per_bytes) == (0.1 / 1e3, 0.1 / 1e3)
    assert (found.latency_s, found.name) == (1.0 + 4 * 0.5, "ring, bulk")
    inside = _candidate(
        "ring",
        Traffic(num_steps=3, wire_ratio=2.0, num_peers=5),
        "bulk",
        device,
        constants | {"bulk_peer_s": 0.1, "bulk_launch_s": 0.7, "pipeline_ratio": 0.2},
        1.5,
    )
    assert inside.slope_s_per_bytes == pytest.approx((2.0 + 3.0) * 1.5 / 50.0)
    assert inside.roof_s_per_bytes == 0.02
    chain = 3 * 2.0 + 5 * 0.1
    assert inside.latency_s == pytest.approx(1.0 + 0.7 + chain)
    assert inside.root_s2_per_bytes == pytest.approx(4 * 0.2 * chain * 0.15)


def test_a_switch_that_adds_in_one_node_and_in_two():
    """Two nodes of four: one S of the pair's trees, a quarter by each device, in two steps out; one node sends none."""
    one, two = (in_switch.rule(Group(kind="all_reduce", num_devices=n, per_node=4, has_reduction=True)) for n in (4, 8))
    assert (one.out_ratio, one.num_out_steps, one.wire_ratio) == (0.0, 0, 1.25)
    assert (two.out_ratio, two.num_out_steps, two.wire_ratio) == (0.25, 2, 1.25)


@pytest.mark.parametrize(
    ("experts", "each", "places", "hit"),
    [
        (8, 1, 4, 1.0),  # one expert lies on one place
        (8, 8, 4, 4.0),  # all lie on all
        (8, 7, 4, 4.0),  # one left out leaves no place of two empty
        (8, 6, 4, 4 * (1 - 1 / 28)),  # both of its two are the two left out, one pair of 28
        (4, 2, 2, 2 * (1 - 1 / 6)),
    ],
)
def test_places_that_a_token_s_experts_lie_on(experts, each, places, hit):
    routing = Routing(group=Group(kind="x", num_devices=8, per_node=8), num_experts=experts, experts_per_token=each)
    assert routing.places_hit(places) == pytest.approx(hit)


def test_whose_constants_are_one_s_own():
    """A library's own, and the vendor's for what engines do not write themselves: sums they do."""
    assert _is_same("all_reduce", "vllm", "vllm")
    assert _is_same("all_gather", "vllm", VENDOR_LIBRARY)
    assert not _is_same("all_reduce", "vllm", VENDOR_LIBRARY)
    assert not _is_same("all_gather", "vllm", "sglang")
