"""Groups of nodes with different network cards: where rings go, what a step takes, and how layers are dealt out."""

from dataclasses import replace

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.training.columns import columns_of
from orrery.training.islands import Fleet, NodeGroup, adapted_layers, even_layers, grouped_step
from orrery.training.islands.fleet import hop_links, stage_groups
from orrery.training.step import step_of

DEVICE = get_device("a100-sxm-80gb")
NODES = 8


def link(gigabits):
    """One of eight devices' part of a node's card."""
    return replace(DEVICE.scaleout, each_way_bytes_per_s=gigabits * 1e9 / 8 / 8)


def job(nodes=NODES, batch=768):
    return TrainingJob(
        model=get_model("megatron-gpt-3.6b"),
        framework=get_framework("megatron-lm", DEVICE),
        recipe=get_recipe("bf16"),
        cluster=Cluster(device=DEVICE, num_devices=8 * nodes, devices_per_node=8),
        seq_len=2048,
        global_batch=batch,
    )


def layout(nodes=NODES, pp=2):
    return TrainingLayout(pp=pp, dp=8 * nodes // pp, micro_batch=4, sharding="zero1", recompute="full")


def fleet(first=200, second=200, between=25, nodes=NODES):
    half = nodes // 2
    groups = (
        NodeGroup(name="ib", num_nodes=half, link=link(first)),
        NodeGroup(name="roce", num_nodes=half, link=link(second)),
    )
    return Fleet(groups=groups, between=link(between))


def alone(gigabits, nodes=NODES):
    return Fleet(groups=(NodeGroup(name="one", num_nodes=nodes, link=link(gigabits)),), between=link(gigabits))


def test_rings_stay_inside_a_group_where_its_nodes_are_neighbours():
    assert stage_groups(job(), layout(), fleet(), "grouped") == [{0}, {1}]
    assert stage_groups(job(), layout(), fleet(), "dealt") == [{0, 1}, {0, 1}]
    assert hop_links(job(), layout(), fleet(), "grouped") == [link(25)]
    assert hop_links(job(), layout(), fleet(), "dealt") == [link(200)]


def test_nodes_are_dealt_round_robin_until_the_smaller_group_is_empty():
    groups = (NodeGroup(name="a", num_nodes=3, link=link(1)), NodeGroup(name="b", num_nodes=1, link=link(1)))
    assert Fleet(groups=groups, between=link(1)).nodes("dealt") == [0, 1, 0, 0]
    assert Fleet(groups=groups, between=link(1)).nodes("grouped") == [0, 0, 0, 1]


def test_one_group_and_even_layers_is_the_plain_step():
    one = job()
    plain = step_of(
        replace(one, cluster=replace(one.cluster, device=replace(DEVICE, scaleout=link(200)))), columns_of([layout()])
    )
    found = grouped_step(one, layout(), alone(200), even_layers(30, 2))
    assert found.time_s == pytest.approx(float(plain.time_s[0]), rel=0.02)
    assert found.hardware_flops == pytest.approx(float(plain.hardware_flops[0]) * 64, rel=0.01)


def test_groups_are_near_the_fast_cluster_and_well_above_the_slow_one():
    even = even_layers(30, 2)
    fast, slow = (grouped_step(job(), layout(), alone(rate), even).time_s for rate in (200, 25))
    aware = grouped_step(job(), layout(), fleet(), even).time_s
    oblivious = grouped_step(job(), layout(), fleet(), even, "dealt").time_s
    assert fast < aware < oblivious < slow
    assert aware / fast < 1.35
    assert slow / aware > 1.3


def test_a_network_between_groups_as_fast_as_inside_changes_nothing():
    even = even_layers(30, 2)
    assert grouped_step(job(), layout(), fleet(between=200), even).time_s == pytest.approx(
        grouped_step(job(), layout(), alone(200), even).time_s
    )


def test_layers_leave_the_stage_whose_ring_is_slow():
    mixed = fleet(first=200, second=25)
    even = grouped_step(job(), layout(), mixed, even_layers(30, 2))
    adapted = adapted_layers(job(), layout(), mixed)
    assert adapted.layers[1] < 15
    assert sum(adapted.layers) == 30
    assert adapted.time_s < 0.95 * even.time_s
    every = min(grouped_step(job(), layout(), mixed, (n, 30 - n)).time_s for n in range(1, 30))
    assert adapted.time_s == pytest.approx(every)  # moving one layer at a time finds the best of all partitions here


def test_a_slow_ring_costs_less_at_the_last_stage_than_at_the_first():
    even = even_layers(30, 2)
    last = grouped_step(job(), layout(), fleet(first=200, second=25), even).time_s
    first = grouped_step(job(), layout(), fleet(first=25, second=200), even).time_s
    assert last < first


def test_even_layers():
    assert even_layers(30, 4) == (8, 8, 7, 7)


@pytest.mark.parametrize(
    ("layers", "cut", "says"),
    [
        ((15, 16), layout(), "add up to 30"),
        ((30, 0), layout(), "from 1"),
        ((15, 15), layout(nodes=4), "uses all of them"),
        ((15, 15), replace(layout(), schedule="gpipe"), "1f1b"),
    ],
)
def test_what_does_not_fit_is_refused(layers, cut, says):
    with pytest.raises(ScenarioError, match=says):
        grouped_step(job(), cut, fleet(), layers)
