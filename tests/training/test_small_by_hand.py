"""Small formulas of training, each worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.training.faults.erasure import code_matrix
from orrery.training.faults.goodput import expected
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan
from orrery.training.faults.saving import Saving
from orrery.training.faults.techniques import checkpoint_in_memory
from orrery.training.faults.techniques.checkpoint_in_memory import InMemoryKnobs
from orrery.training.graphs import epoch
from orrery.training.graphs.epoch import layer_s
from orrery.training.graphs.volume import GraphModel, Parts
from orrery.training.islands.step import GroupedStep
from orrery.training.local_updates import LOCAL_UPDATES
from orrery.training.placement.mesh import Mesh
from orrery.training.replica import Replica
from orrery.training.schedules.techniques import schedule_dualpipe, schedule_zero_bubble_v
from orrery.training.sequences.lengths import LongTail

SAVING = Saving(
    shard_bytes=8e9,
    num_devices=16,
    devices_per_node=4,
    forward_s=1.0,
    backward_s=2.0,
    update_s=1.0,
    device_to_host_bytes_per_s=1e9,
    storage_bytes_per_s=16e9,
    host_memory_bytes_per_s=2e9,
    node_link_bytes_per_s=8e9,
    num_replicas=2,
)


def test_parity_in_memory_waits_for_the_slower_of_link_and_memory_and_follows_after_whole_steps():
    # a part is 4 GB; the copy goes at min(1, 2 / 4) = 0.5 GB/s and takes 8 s, 5 s of them beyond forward and backward
    # a node of 4 devices sends 16 GB for each of 2 parities: 4 s over the link, but 2 x 32 / 2 = 32 s through memory
    knobs = InMemoryKnobs(group_nodes=4, num_parity=2, budget_frac=0.5)
    cost = checkpoint_in_memory.rule(SAVING, 10, knobs)
    assert (cost.blocked_s, cost.memory_lag_s, cost.memory_load_s) == (5.0, 32.0, 16.0)
    assert cost.memory_interval_s == 32.0  # 8 steps of 4 s let parity end; stops alone would ask 5 / 0.5 = 10 s
    assert cost.node_link_bytes == 32e9
    assert cost.rebuild_s == 2 * 16 / 8  # two data pieces of 16 GB at 8 GB/s
    assert cost.host_bytes == 2 * 16e9 * 4 / 2
    # with memory that is no limit the copy takes 4 s, the link 4 s for both, and stops of 1 s ask 1 / 0.05 = 20 s
    quick = checkpoint_in_memory.rule(
        replace(SAVING, host_memory_bytes_per_s=float("inf")), 10, replace(knobs, budget_frac=0.05)
    )
    assert (quick.blocked_s, quick.memory_lag_s, quick.memory_interval_s) == (1.0, 4.0, 20.0)


@pytest.mark.parametrize(("data", "parity"), [(0, 2), (-1, 1), (3, -1), (200, 57)])
def test_a_code_of_too_few_or_too_many_pieces_is_refused(data, parity):
    with pytest.raises(ScenarioError, match=f"got {data} data and {parity} parity"):
        code_matrix(data, parity)


def test_the_first_parity_of_a_code_is_the_plain_sum_and_none_is_empty():
    assert code_matrix(3, 0).shape == (0, 3)
    found = code_matrix(3, 2)
    assert found[0].tolist() == [1, 1, 1]
    assert found[:, 0].tolist() == [1, 1]
    assert len(set(found[1].tolist())) == 3
    assert code_matrix(200, 56).shape == (56, 200)


def test_operations_a_second_of_a_device():
    step = GroupedStep(
        layers=(1,),
        groups=(frozenset({0}),),
        stage_end_s=(1.0,),
        reduce_s=(0.0,),
        finish_s=(0.0,),
        time_s=4.0,
        hardware_flops=8e15,
    )
    assert step.flops_per_s_per_device(10) == 2e14


def test_isolated_experts_wait_for_their_own_island_alone():
    """2 GB of gradients at 0.4 GB/s beside a backward pass of two seconds; whatever joins the islands."""
    one = Replica(
        step_s=3.0,
        backward_s=2.0,
        num_parameters=1e9,
        gradient_bytes=2.0,
        weight_bytes=4.0,
        all_reduce_s=lambda size: size / 1e9,
        inside_s=lambda size: size / 4e8,
        neighbour_s=lambda size: size / 1e9,
    )
    technique = LOCAL_UPDATES.get("isolated")
    found = technique.rule(one, technique.knobs())
    assert found.time_s == pytest.approx(3.0 + 5.0 - 2.0)
    assert found.num_rounds_stale == 0
    assert found.sent_bytes == 2e9
    assert found.extra_bytes == 0.0


def test_a_backward_layer_of_a_graph_is_the_forward_one_and_a_gradient_for_each_product():
    device = get_device("a100-sxm-80gb")
    parts = Parts(num_vertices=1000, vertices=np.array([1000]), edges=np.array([8000]), sent=np.array([0]))
    model = GraphModel(name="gcn", num_layers=2, hidden_size=64)
    forward_s, backward_s = layer_s(parts, model, device)
    gradient_s = epoch._product_s(64, 64, 1000, device)
    assert backward_s - forward_s == pytest.approx(model.num_products * gradient_s, rel=1e-12)
    assert gradient_s > 0.0


def test_neighbours_along_an_axis_share_a_node_as_far_as_the_strides_allow():
    # 4 x 8 devices in nodes of 8: the inner axis fills a node, the outer one has one member in each
    mesh = Mesh(device=get_device("a100-sxm-80gb"), shape=(4, 8), devices_per_node=8)
    assert [mesh.collective("all_reduce", axis, 1e6).devices_per_node for axis in (0, 1)] == [1, 8]
    # 4 x 2 in nodes of 4: two of the outer axis share a node; 4 x 16 in nodes of 8: never less than one
    assert (
        Mesh(device=mesh.device, shape=(4, 2), devices_per_node=4).collective("all_reduce", 0, 1e6).devices_per_node
        == 2
    )
    assert (
        Mesh(device=mesh.device, shape=(4, 16), devices_per_node=8).collective("all_reduce", 0, 1e6).devices_per_node
        == 1
    )


def test_rare_failures_come_once_in_their_mean_time_over_work_and_saves():
    # 150 s of work, saved every 100 s for 40 s each: a stretch of 140 s and one of 90 s, 230 s in all
    found = expected(
        FaultModel(num_devices=1, software_mtbf_s=1e9),
        CheckpointPlan(interval_s=100.0, blocked_s=40.0),
        RunPlan(step_s=1.5, num_steps=100),
    )
    assert found.time_s == pytest.approx(230.0, rel=1e-6)
    assert found.num_failures == pytest.approx(230e-9, rel=1e-6)
    assert found.lost_frac == pytest.approx((140**2 + 90**2) / 2 * 1e-9 / 230, rel=1e-5)  # half a stretch a failure


def test_schedules_of_four_stages():
    pp, vp, m = np.array([4]), np.array([2]), np.array([8])
    dual = schedule_dualpipe.rule(pp, np.array([1]), m)
    # (4 / 2 - 1)(F + 2 B - W): one forward, two backward, less one weight gradient; blocks 8 - 6 + 1 of 8
    assert [float(x[0]) for x in (dual.forward_idle_ratio, dual.backward_idle_ratio, dual.weight_idle_ratio)] == [
        1,
        2,
        -1,
    ]
    assert (dual.is_parallelogram, float(dual.fill_forward_ratio[0]), float(dual.joined_ratio[0])) == (
        False,
        2.0,
        0.375,
    )
    assert (float(dual.in_flight_ratio[0]), float(dual.parameter_copies_ratio[0])) == (5.0, 2.0)
    zero = schedule_zero_bubble_v.rule(pp, vp, m)
    assert [float(x[0]) for x in (zero.backward_idle_ratio, zero.weight_idle_ratio)] == [3.0, -3.0]
    assert [float(x[0]) for x in (zero.fill_forward_ratio, zero.fill_backward_ratio, zero.sends_ratio)] == [
        1.5,
        1.5,
        2.0,
    ]
    assert float(zero.in_flight_ratio[0]) == 4.0


def test_lengths_need_a_median_of_a_token_and_no_negative_spread():
    assert LongTail(median_tokens=1.0, spread_ratio=0.5, most_tokens=1).batch(3).tolist() == [1, 1, 1]
    assert set(LongTail(median_tokens=7.0, spread_ratio=0.0, most_tokens=9).batch(70).tolist()) == {7}
    for wrong in ({"median_tokens": 0.5}, {"spread_ratio": -0.1}, {"most_tokens": 0}):
        with pytest.raises(ScenarioError, match="lengths: got median"):
            LongTail(**{"median_tokens": 1.0, "spread_ratio": 0.0, "most_tokens": 1} | wrong)
