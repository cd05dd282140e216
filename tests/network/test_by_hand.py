"""Formulas of the network worked out by hand on cases small enough to draw."""

import math

import pytest

from orrery.network.group import Group
from orrery.network.plan import candidates
from orrery.network.resolve import library_key
from orrery.network.techniques import one_shot, ring, two_shot


def _ring(kind, nodes, per_node):
    return ring.rule(Group(kind=kind, num_devices=nodes * per_node, per_node=per_node))


def test_a_ring_through_two_nodes_of_four():
    """Eight devices in a row, 0..3 | 4..7. A chunk of an eighth makes 7 hops a pass, and each device sends all but one.

    Every lap crosses the border of a node once on its way: of the 7 hops of a pass, 1 leaves a node (3 -> 4) and 6
    stay inside (0-1-2-3 and 4-5-6-7). Four rings share the load over four network cards: each carries a fourth.
    """
    gather, reduce = _ring("all_gather", 2, 4), _ring("all_reduce", 2, 4)
    assert (gather.num_steps, gather.num_out_steps) == (6, 1)
    assert (reduce.num_steps, reduce.num_out_steps) == (12, 2)
    assert gather.wire_ratio == pytest.approx(7 / 8)
    assert gather.out_ratio == pytest.approx(7 / 8 / 4)
    assert reduce.out_ratio == pytest.approx(2 * 7 / 8 / 4)


def test_a_ring_through_three_nodes_of_two():
    """Six devices: 5 hops a pass, of which 2 leave a node (1 -> 2, 3 -> 4)."""
    scatter = _ring("reduce_scatter", 3, 2)
    assert (scatter.num_steps, scatter.num_out_steps) == (3, 2)
    assert scatter.out_ratio == pytest.approx(5 / 6 / 2)


def test_a_ring_of_nodes_with_one_device_each_uses_the_network_only():
    """Four nodes of one device: 3 hops a pass, none inside, and no byte on the links inside a node."""
    gather = _ring("all_gather", 4, 1)
    assert (gather.num_steps, gather.num_out_steps) == (0, 3)
    assert gather.wire_ratio == 0.0
    assert gather.out_ratio == pytest.approx(3 / 4)


def test_a_broadcast_is_one_pass_with_the_whole_buffer():
    down = _ring("broadcast", 2, 4)
    assert (down.num_steps, down.num_out_steps) == (6, 1)
    assert (down.wire_ratio, down.out_ratio) == (1.0, 1.0 / 4)


@pytest.mark.parametrize(
    ("near_frac", "far_frac"), [(0.5, 0.25), (0.01, 0.9)], ids=["the network is slower", "the links are slower"]
)
def test_bytes_inside_and_between_nodes_overlap(make_device, near_frac, far_frac):
    """Sixteen devices in two nodes, all-gather by ring: the slower of the two streams sets the slope, not their sum.

    Links of 400 GB/s and a network of 50 GB/s each way. A device sends 15/16 of the buffer inside (and stages 0.2 of
    it) and 15/16/8 across its network card.
    """
    device = make_device()
    constants = {
        "launch_s": 4e-6,
        "bulk_launch_s": 1e-6,
        "bulk_step_s": 5e-7,
        "bulk_rate_frac": near_frac,
        "staging_ratio": 0.2,
        "scaleout_step_s": 2e-5,
        "scaleout_rate_frac": far_frac,
        "pipeline_ratio": 0.25,
    }
    group = Group(kind="all_gather", num_devices=16, per_node=8)
    found = next(c for c in candidates(group, device, constants) if c.name == "ring, bulk")
    near = (15 / 16 + 0.2) / (near_frac * 400e9)
    far = 15 / 16 / 8 / (far_frac * 50e9)
    chain_s = 14 * 5e-7 + 1 * 2e-5
    assert found.slope_s_per_bytes == pytest.approx(max(near, far), rel=1e-12)
    assert found.latency_s == pytest.approx(5e-6 + chain_s, rel=1e-12)
    assert found.root_s2_per_bytes == pytest.approx(4 * 0.25 * chain_s * max(near, far), rel=1e-12)
    size = 3e6
    bare = 5e-6 + chain_s + max(near, far) * size
    assert found.time_s(size) == pytest.approx(bare + 2 * math.sqrt(0.25 * chain_s * max(near, far) * size))


@pytest.mark.parametrize(
    ("technique", "n", "is_used"), [(one_shot, 2, True), (one_shot, 4, False), (two_shot, 4, False)]
)
def test_on_a_bus_engines_own_kernels_join_two_devices_only(technique, n, is_used):
    """Measured with four and eight RTX PRO 6000: all three engines take one time, the vendor's library's."""
    group = Group(kind="all_reduce", num_devices=n, per_node=n, topology="bus", has_peer_to_peer=True)
    assert (technique.rule(group) is not None) == is_used
    switched = Group(kind="all_reduce", num_devices=n, per_node=n)
    assert technique.rule(switched) is not None


@pytest.mark.parametrize(
    ("words", "library"),
    [
        ("torch 2.9.1+cu130 NCCL 2.27.7, all_reduce_bench.py", "nccl-eager"),
        ("nccl-tests, NCCL 2.27.7", "nccl"),
        ("NCCL (torch.distributed)", "nccl-eager"),
        ("SGLang", "sglang"),
    ],
)
def test_who_a_table_means(words, library):
    assert library_key(words) == library


@pytest.mark.parametrize(("n", "size", "name"), [(2, 1e5, "one-shot"), (8, 1e3, "one-shot"), (8, 1e7, "two-shot")])
def test_an_engines_own_all_reduce_by_hand(make_device, n, size, name):
    """One shot: a start, a step, a flag of each other device, (n - 1) S over 0.6 of 400 GB/s. Two shots: a start, two
    steps with their barrier, 2 (n - 1)/n S. Nothing staged (0.3 of S a kernel) is free.
    """
    device = make_device()
    group = Group(kind="all_reduce", num_devices=n, per_node=n)
    constants = device.calibrations["all_reduce", "any", "vllm"].constants
    found = {c.name: c for c in candidates(group, device, constants)}
    rate = 0.6 * 400e9
    one = 3e-6 + 9e-7 + (n - 1) * 1e-7 + (n - 1 + 0.3) * size / rate
    assert found["one-shot"].time_s(size) == pytest.approx(one, rel=1e-12)
    if n > 2:
        two = 3e-6 + 2 * 2e-6 + (2 * (n - 1) / n + 0.3) * size / rate
        assert found["two-shot"].time_s(size) == pytest.approx(two, rel=1e-12)
    assert min(found.values(), key=lambda c: c.time_s(size)).name == name
