"""State cut at several levels: bytes and groups by hand, memory by hand, and the limits that plans must meet."""

from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery import network
from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Link
from orrery.training.columns import columns_of
from orrery.training.levels import Level, Topology, of_cluster, view
from orrery.training.partition import (
    PARTITIONS,
    Exchange,
    get_plan,
    largest_fitting,
    partitioned_step,
    ranked,
    traffic_of,
)
from orrery.training.partition.traffic import exchange_s
from orrery.training.state_plan import Plan, Wire
from orrery.training.step import step_of

H100 = get_device("h100-sxm")
PAIR = Link(name="pair", each_way_bytes_per_s=200e9, latency_s=1e-6, num_devices=2)
NODE = Link(name="node", each_way_bytes_per_s=100e9, latency_s=2e-6, num_devices=8)
FAR = Link(name="far", each_way_bytes_per_s=12.5e9, latency_s=5e-6)


def machine(devices=32, far=FAR):
    return Topology(
        levels=(
            Level(name="pair", num_devices=2, link=PAIR),
            Level(name="node", num_devices=8, link=NODE),
            Level(name="system", num_devices=devices, link=far, is_network=True),
        )
    )


def job_on(devices=32, batch=64, hides=True, model="llama-2-7b"):
    framework = replace(get_framework("deepspeed", H100, "bf16"), overlaps_parameters=hides, shard_copies="nothing")
    return TrainingJob(
        model=get_model(model),
        cluster=Cluster(device=H100, num_devices=devices, devices_per_node=8),
        framework=framework,
        recipe=get_recipe("bf16"),
        seq_len=2048,
        global_batch=batch,
    )


def test_levels_name_their_sizes_and_the_level_that_a_span_needs():
    t = machine()
    assert t.names == ("device", "pair", "node", "system")
    assert [t.size(n) for n in t.names] == [1, 2, 8, 32]
    assert [t.level_of(n) for n in (2, 3, 8, 9, 32)] == [0, 1, 1, 2, 2]
    with pytest.raises(ScenarioError, match="no 'rack'; write 'device'"):
        t.size("rack")
    with pytest.raises(ScenarioError, match="no group has 64"):
        t.level_of(64)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (4, 2)])
def test_a_level_that_does_not_hold_whole_groups_is_refused(sizes):
    with pytest.raises(ScenarioError, match="no whole number"):
        Topology(levels=tuple(Level(name=f"l{i}", num_devices=n, link=PAIR) for i, n in enumerate(sizes)))


def test_a_level_inside_a_node_cannot_lie_outside_the_network():
    with pytest.raises(ScenarioError, match="swap them"):
        Topology(
            levels=(
                Level(name="far", num_devices=2, link=FAR, is_network=True),
                Level(name="near", num_devices=4, link=PAIR),
            )
        )


def test_a_group_sees_its_own_links():
    t = machine()
    near, per_node = view(t, H100, 0)
    assert (near.scaleup, per_node) == (PAIR, 2)
    far, per_node = view(t, H100, 2)
    assert (far.scaleup, far.scaleout, per_node) == (NODE, FAR, 8)


def test_a_cluster_has_a_node_and_a_system():
    t = of_cluster(Cluster(device=H100, num_devices=32, devices_per_node=8))
    assert [(x.name, x.num_devices, x.link) for x in t.levels] == [
        ("node", 8, H100.scaleup),
        ("system", 32, H100.scaleout),
    ]
    assert of_cluster(Cluster(device=H100, num_devices=8, devices_per_node=8)).names == ("device", "node")


def test_a_quantised_element_carries_its_part_of_a_scale():
    assert Wire().sent_bytes(1000) == 2000
    assert Wire(element_bytes=0.5, block_elements=256, scale_bytes=4).sent_bytes(1024) == 512 + 16


def test_what_the_three_plans_send_by_hand():
    t, layer, whole = machine(), 1024.0, 10240.0
    plain = traffic_of(get_plan("zero3-partition", t), t, layer, whole)
    assert [(e.kind, e.num_devices, e.stride, e.message_bytes) for e in (*plain.forward, *plain.backward)] == [
        ("all_gather", 32, 1, 2048),
        ("all_gather", 32, 1, 2048),
    ]
    assert [(e.kind, e.num_devices, e.message_bytes) for e in plain.gradients] == [("reduce_scatter", 32, 2048)]
    assert plain.step == ()
    narrow = traffic_of(get_plan("zero-plus-plus", t), t, layer, whole)
    assert [(e.num_devices, e.message_bytes) for e in narrow.forward] == [(32, 1024 + 16)]
    assert [(e.num_devices, e.message_bytes) for e in narrow.backward] == [(8, 2048)]
    assert [(e.kind, e.num_devices, e.stride, e.message_bytes) for e in narrow.gradients] == [
        ("all_to_all", 8, 1, 512 + 16),
        ("all_to_all", 4, 8, (512 + 16) / 8),
    ]
    ours = traffic_of(get_plan("three-level-partition", t), t, layer, whole)
    assert [(e.num_devices, e.message_bytes) for e in (*ours.forward, *ours.backward)] == [(2, 1040), (2, 1040)]
    assert [(e.kind, e.num_devices, e.stride) for e in ours.gradients] == [("all_to_all", 8, 1)]
    assert [(e.kind, e.num_devices, e.stride, e.elements) for e in ours.step] == [
        ("reduce_scatter", 4, 8, 1280),
        ("all_gather", 16, 2, 5120),
    ]


def test_copies_of_the_optimizer_sum_their_shares():
    t = machine()
    plan = Plan(name="node copies", weights="node", gradients="node", optimizer="node")
    assert [(e.kind, e.num_devices, e.stride, e.elements) for e in traffic_of(plan, t, 8.0, 800.0).step] == [
        ("all_reduce", 4, 8, 100),
    ]


def test_a_collective_takes_what_the_network_says_on_the_link_of_its_level():
    job, t = job_on(), machine()
    gather = Exchange(what="x", kind="all_gather", num_devices=2, stride=1, elements=1e8, wire=Wire())
    device, per_node = view(t, H100, 0)
    work = network.Collective(
        kind="all_gather",
        num_devices=2,
        message_bytes=2e8,
        devices_per_node=per_node,
        library="nccl",
        has_peer_to_peer=True,
    )
    alone_s = float(network.predict(work, device).time_s)
    assert exchange_s(job, t, gather) == pytest.approx(job.framework.network_ratio * alone_s)
    assert exchange_s(job, t, replace(gather, num_devices=4, stride=8)) > exchange_s(job, t, gather)


def test_on_a_clusters_own_levels_zero3_gathers_as_the_training_floor_does():
    """One layer's gather, of the same bytes among the same devices, hidden nowhere."""
    job = job_on(hides=False)
    t = of_cluster(job.cluster)
    steps = step_of(job, columns_of([TrainingLayout(dp=32, sharding="zero3", micro_batch=1)]))
    layer = 4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096
    each = {
        kind: exchange_s(job, t, Exchange(what="x", kind=kind, num_devices=32, stride=1, elements=layer, wire=Wire()))
        for kind in ("all_gather", "reduce_scatter")
    }
    wire = job.framework.gradient_bytes
    assert wire == 2.0
    want = 2 * 32 * (2 * each["all_gather"] + each["reduce_scatter"])
    end = 32000 * 4096  # the embedding and the head each gathered and reduced once
    ends = {
        kind: exchange_s(job, t, Exchange(what="x", kind=kind, num_devices=32, stride=1, elements=end, wire=Wire()))
        for kind in ("all_gather", "reduce_scatter")
    }
    want += 2 * 2 * sum(ends.values())
    assert float(steps.parts["sharding"][0]) == pytest.approx(want, rel=1e-6)


def test_memory_by_hand():
    job, t = job_on(), machine()
    steps = {name: partitioned_step(job, t, get_plan(name, t)) for name in PARTITIONS.techniques if "-" in name}
    parameters = get_model("llama-2-7b").num_parameters
    held = {name: step.held for name, step in steps.items()}
    plain, ours, narrow = (held[n] for n in ("zero3-partition", "three-level-partition", "zero-plus-plus"))
    assert plain["weights"] == pytest.approx(2 * parameters / 32, rel=1e-6)
    assert ours["weights"] == pytest.approx(2 * parameters / 2, rel=1e-6)
    assert ours["gradients"] == pytest.approx(2 * parameters / 8, rel=1e-6)
    assert ours["optimizer"] == pytest.approx(12 * parameters / 32, rel=1e-6)
    assert narrow["second copy of weights"] == pytest.approx(2 * parameters / 8, rel=1e-6)
    assert plain["second copy of weights"] == 0.0
    assert plain["activations"] == ours["activations"] == narrow["activations"] > 0


def test_parts_add_up_and_operations_do_not_depend_on_the_plan():
    job, t = job_on(), machine()
    steps = [partitioned_step(job, t, get_plan(name, t)) for name in PARTITIONS.techniques]
    assert len({s.model_flops for s in steps}) == 1
    for s in steps:
        assert s.time_s == pytest.approx(sum(s.parts.values()))
        assert s.model_flops_per_s_per_device * s.time_s * 32 == pytest.approx(s.model_flops)


def test_slow_links_between_nodes_favour_plans_that_stay_inside():
    slow = replace(FAR, each_way_bytes_per_s=FAR.each_way_bytes_per_s / 50)
    job, t = job_on(batch=32 * 8), machine(far=slow)
    plain, narrow, ours = (
        partitioned_step(job, t, get_plan(n, t)).time_s
        for n in ("zero3-partition", "zero-plus-plus", "three-level-partition")
    )
    assert ours < narrow < plain


def test_between_nodes_the_three_level_plan_sends_nothing_but_once_a_step():
    job, t = job_on(), machine()
    slow = replace(FAR, each_way_bytes_per_s=FAR.each_way_bytes_per_s / 10)
    fast_step, slow_step = (
        partitioned_step(job, x, get_plan("three-level-partition", x)) for x in (t, machine(far=slow))
    )
    assert fast_step.parts["gathering"] == slow_step.parts["gathering"]
    assert fast_step.parts["gathering again, reducing"] == slow_step.parts["gathering again, reducing"]
    name = "once a step, between groups"
    assert slow_step.parts[name] > 5 * fast_step.parts[name]


def every_plan(topology, like):
    """All levels for all states, with the wires of ``like``."""
    names = topology.names
    for weights, gradients, optimizer, secondary in product(names, repeat=4):
        plan = replace(
            like,
            name=f"{weights}/{secondary}/{gradients}/{optimizer}",
            weights=weights,
            gradients=gradients,
            optimizer=optimizer,
            secondary=secondary,
        )
        if not plan.refusal(topology):
            yield plan


def test_every_sensible_plan_is_tried_and_the_fastest_that_fits_comes_first():
    job, t = job_on(), machine()
    plans = list(every_plan(t, get_plan("zero3-partition", t)))
    assert len({p.name for p in plans}) == len(plans)
    assert all(not p.refusal(t) for p in plans)
    # optimizer no nearer than weights or gradients: sum over o of (o + 1)^2 pairs, times the levels inside the weights
    assert len(plans) == sum((g + 1) * sum(max(w, 1) for w in range(g + 1)) for g in range(4))
    found = ranked(job, t, plans)
    assert found
    assert all(a.time_s <= b.time_s for a, b in pairwise(found))
    assert all(s.memory_bytes <= 80 * 2**30 for s in found)
    assert len(found) < len(plans), "a whole copy of a 7B's state and its optimizer does not fit"


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_nearer_weights_take_more_memory_and_less_time_where_links_get_slower_outwards(data):
    t = machine(
        far=replace(FAR, each_way_bytes_per_s=FAR.each_way_bytes_per_s / 4)
    )  # a node's eight: a quarter of NODE
    names = t.names[1:]
    first = data.draw(st.sampled_from(names[:-1]))
    second = data.draw(st.sampled_from(names[names.index(first) + 1 :]))
    job = job_on(hides=False)
    near, far = (
        partitioned_step(job, t, Plan(name=x, weights=x, gradients="system", optimizer="system"))
        for x in (first, second)
    )
    assert near.memory_bytes > far.memory_bytes
    gathers = [sum(s.exchanges.get(n, 0.0) for n in ("weights", "weights again")) for s in (near, far)]
    assert gathers[0] < gathers[1]


def test_the_largest_micro_batch_that_fits_is_larger_where_state_is_smaller():
    job, t = job_on(), machine()
    plain, ours = (largest_fitting(job, t, get_plan(n, t)) for n in ("zero3-partition", "three-level-partition"))
    assert plain >= ours >= 1
    for plan, size in (("zero3-partition", plain), ("three-level-partition", ours)):
        twice = replace(job, global_batch=64 * size)
        over = partitioned_step(twice, t, get_plan(plan, t), micro_batch=2 * size)
        assert over.memory_bytes > 0.985 * H100.memory_capacity_bytes


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan(name="p", weights="system", gradients="node", optimizer="node"), "optimizer: cut over 8 devices"),
        (Plan(name="p", weights="node", gradients="pair", optimizer="pair"), "write 'node' or a level outside"),
        (Plan(name="p", weights="pair", gradients="pair", optimizer="system", secondary="node"), "no nearer than pair"),
    ],
)
def test_plans_without_sense_are_refused(plan, says):
    assert says in plan.refusal(machine())
    with pytest.raises(ScenarioError, match=says.split(":")[0]):
        partitioned_step(job_on(), machine(), plan)


def test_batches_devices_and_names_are_checked():
    t = machine()
    plan = get_plan("zero3-partition", t)
    with pytest.raises(ScenarioError, match="write 96"):
        partitioned_step(job_on(batch=100), t, plan)
    with pytest.raises(ScenarioError, match="hold 32 devices, the job has 64"):
        partitioned_step(job_on(devices=64), t, plan)
    with pytest.raises(ScenarioError, match="lora"):
        partitioned_step(replace(job_on(), task="lora"), t, plan)
    with pytest.raises(UnknownName, match="zero-plus-plus"):
        get_plan("zero-plus", t)
