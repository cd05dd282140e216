"""Every algorithm against a simulation that moves the chunks one by one."""

import math
from itertools import product
from pathlib import Path

import played_out
import pytest
from battery import over

from orrery.network.exchange import EXCHANGES
from orrery.network.group import Group
from orrery.network.plan import ALGORITHMS
from orrery.network.routing import Routing
from orrery.network.techniques import (
    hierarchical,
    in_switch,
    one_shot,
    pairwise,
    per_device,
    per_expert,
    ring,
    torus_ring,
    tree,
    two_shot,
)

SIZES = (2, 3, 4, 5, 8, 16)


def group(kind="all_reduce", n=8, per_node=0, **more):
    return Group(kind=kind, num_devices=n, per_node=min(per_node or n, n), **more)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter"])
def test_ring_counts_what_a_ring_does(kind, n):
    steps, sent, held = played_out.ring(n, kind)
    traffic = ring.rule(group(kind, n))
    assert (traffic.num_steps, traffic.wire_ratio) == (steps, pytest.approx(sent))
    everyone = frozenset(range(n))
    if kind == "reduce_scatter":
        assert all(any(chunk == everyone for chunk in device) for device in held)
    else:
        assert all(chunk == everyone for device in held for chunk in device)


@pytest.mark.parametrize(("technique", "oracle"), [(one_shot, played_out.one_shot), (two_shot, played_out.two_shot)])
@pytest.mark.parametrize("n", SIZES[1:])
def test_fused_kernels_count_what_they_send(technique, oracle, n):
    steps, sent, held = oracle(n)
    traffic = technique.rule(group(n=n))
    assert (traffic.num_steps, traffic.wire_ratio) == (steps, pytest.approx(sent))
    assert all(chunk == frozenset(range(n)) for device in held for chunk in device)


@pytest.mark.parametrize("n", SIZES[1:])
def test_the_switch_adds(n):
    steps, sent, _ = played_out.in_switch(n)
    traffic = in_switch.rule(group(n=n, has_reduction=True))
    assert (traffic.num_steps, traffic.wire_ratio) == (steps, pytest.approx(sent))
    assert in_switch.rule(group(n=n)) is None


@pytest.mark.parametrize("nodes", [2, 3, 4, 7, 8, 16])
def test_the_busiest_node_of_a_double_tree_sends_what_is_counted(nodes):
    depth, sent = played_out.double_tree(nodes)
    traffic = tree.rule(group(n=nodes * 8, per_node=8))
    assert traffic.num_out_steps == 2 * math.ceil(math.log2(nodes))
    assert depth <= math.ceil(math.log2(nodes + 1))
    assert sent == traffic.out_ratio * 8


@pytest.mark.parametrize("per_node", [2, 4, 8])
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_hierarchical_is_three_collectives_in_a_row(nodes, per_node):
    inside_steps, inside_sent, _ = played_out.ring(per_node, "all_reduce")
    across_steps, across_sent, _ = played_out.ring(nodes, "all_reduce")
    traffic = hierarchical.rule(group(n=nodes * per_node, per_node=per_node))
    assert (traffic.num_steps, traffic.num_out_steps) == (inside_steps, across_steps)
    assert traffic.wire_ratio == pytest.approx(inside_sent)
    assert traffic.out_ratio == pytest.approx(across_sent / per_node)


@pytest.mark.parametrize(("n", "per_node"), [(4, 4), (8, 8), (16, 8), (32, 8), (4, 1)])
def test_all_to_all_sends_each_part_once(n, per_node):
    near, far = played_out.all_to_all(n, per_node)
    traffic = pairwise.rule(group("all_to_all", n, per_node))
    assert traffic.wire_ratio == pytest.approx(near)
    assert traffic.out_ratio == pytest.approx(far)


@pytest.mark.parametrize(("n", "dimensions"), [(16, 2), (64, 2), (64, 3), (512, 3)])
def test_torus_rings_run_one_after_another(n, dimensions):
    side = round(n ** (1 / dimensions))
    traffic = torus_ring.rule(group(n=n, topology=f"torus-{dimensions}d"))
    assert traffic.num_steps == dimensions * played_out.ring(side, "all_reduce")[0]
    # a reduce-scatter along each dimension leaves 1/side of the buffer for the next: side, side^2, … add up
    sent = sum(2 * (side - 1) / side ** (i + 1) for i in range(dimensions))
    assert traffic.wire_ratio == pytest.approx(sent)


@pytest.mark.parametrize(("experts", "k", "n", "per_node"), [(8, 2, 4, 4), (8, 3, 8, 4), (16, 3, 4, 2), (12, 4, 6, 3)])
def test_copies_of_tokens_are_those_of_every_possible_choice(experts, k, n, per_node):
    counted = [played_out.copies(experts, k, n, per_node, start) for start in range(n)]
    mean = {key: sum(c.get(key, 0.0) for c in counted) / n for key in counted[0]}
    routing = Routing(group=group(n=n, per_node=per_node), num_experts=experts, experts_per_token=k)
    lowest = per_expert.rule(routing)
    assert lowest.inside_ratio == pytest.approx(mean["expert_near"])
    assert lowest.across_ratio == pytest.approx(mean.get("expert_far", 0.0))
    assert routing.places_hit(n) == pytest.approx(mean["devices"])
    shared = per_device.rule(routing)
    assert shared.across_ratio == pytest.approx(mean.get("other_nodes", 0.0))
    assert shared.local_ratio == pytest.approx(mean["devices"])
    assert shared.inside_ratio == pytest.approx(mean["devices"] * (per_node - 1) / per_node)


@over(
    product(
        ALGORITHMS.techniques.values(),
        ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"],
        [2, 4, 8, 16, 64],
    ),
    named=lambda technique, kind, n: f"{technique.name}, {kind} of {n}",
)
def test_no_algorithm_sends_less_than_the_lower_bound(technique, kind, n):
    """A device must send what others need of it: (n - 1)/n S, twice for a sum that all get; a switch may halve it."""
    traffic = technique.rule(group(kind, n, has_reduction=True))
    if traffic is None:
        return
    least = {"all_reduce": 2 * (n - 1) / n, "broadcast": 0.5}.get(kind, (n - 1) / n)
    assert (
        traffic.wire_ratio + traffic.out_ratio >= least / (2 if technique.name == "in-switch-reduction" else 1) - 1e-9
    )
    assert traffic.num_steps + traffic.num_out_steps >= 1


@pytest.mark.parametrize(
    "technique", [*ALGORITHMS.techniques.values(), *EXCHANGES.techniques.values()], ids=lambda t: t.name
)
def test_every_source_is_listed_on_the_page_about_collectives(technique):
    page = (Path(__file__).resolve().parents[2] / "docs/models/collectives.md").read_text(encoding="utf-8")
    listed = page.split("## Sources")[1]
    assert [key for key in technique.claims if f"[{key}]" not in listed] == []
