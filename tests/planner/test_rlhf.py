"""RLHF plans: timelines and movements worked by hand, the search against counting out, and plans made by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.planner.rlhf.dataflow import PPO, RlhfJob
from orrery.planner.rlhf.mesh import Mesh, mesh_sizes, meshes
from orrery.planner.rlhf.plan import Evaluator, Placed, Plan, describe
from orrery.planner.rlhf.reallocation import Place, reallocation_s
from orrery.planner.rlhf.search import _cost, search, space_of
from orrery.planner.rlhf.techniques import disjoint, searched, symmetric, zero3
from orrery.planner.rlhf.ways import CallPlacement, ways
from orrery.training.columns import columns_of
from orrery.training.step import step_of

DEVICE = get_device("h100-sxm")
SMALL, MIDDLE = get_model("llama-3.2-1b"), get_model("llama-2-7b")
NEAR, FAR = DEVICE.scaleup.each_way_bytes_per_s, DEVICE.scaleout.each_way_bytes_per_s


def job(model=SMALL, num_devices=2, batch=64, calls=PPO, output_tokens=128, per_node=8):
    return RlhfJob(
        models=dict.fromkeys(("actor", "critic", "reference", "reward"), model),
        cluster=Cluster(device=DEVICE, num_devices=num_devices, devices_per_node=per_node),
        framework=get_framework("megatron-lm", DEVICE),
        recipe=get_recipe("bf16"),
        engine=get_engine("vllm", "0", DEVICE),
        batch=batch,
        prompt_tokens=128,
        output_tokens=output_tokens,
        calls=calls,
    )


def placed(first, size, seconds, resident=0.0, weights=0.0, work=0.0, **cut):
    way = CallPlacement(
        **{"tp": 1, "pp": 1, "dp": size, "micro_batch": 1, **cut},
        time_s=seconds,
        resident_bytes=resident,
        weights_bytes=weights,
        work_bytes=work,
    )
    return Placed(mesh=Mesh(first=first, num_devices=size), way=way)


@pytest.fixture(scope="module")
def node():
    """A space of one node."""
    found = space_of(job(MIDDLE, 8, batch=128, output_tokens=384))
    assert not isinstance(found, Infeasible)
    return found


def test_meshes_are_aligned_powers_of_two():
    cluster = Cluster(device=DEVICE, num_devices=8, devices_per_node=4)
    assert mesh_sizes(cluster) == (1, 2, 4, 8)
    assert [str(m) for m in meshes(cluster, 4)] == ["0-3", "4-7"]
    every = [m for size in mesh_sizes(cluster) for m in meshes(cluster, size)]
    for a, b in product(every, every):
        inside = (a.first <= b.first and b.end <= a.end) or (b.first <= a.first and a.end <= b.end)
        assert a.overlaps(b) == inside


def test_calls_on_one_mesh_take_turns():
    found = Evaluator(job()).plan([placed(0, 2, s) for s in (5.0, 1.0, 2.0, 3.0, 7.0, 4.0)])
    assert found.time_s == 22.0
    assert [t.start_s for t in found.turns] == [0.0, 5.0, 6.0, 8.0, 11.0, 18.0]


def test_calls_on_disjoint_meshes_run_side_by_side():
    # generation on both; reward, reference and values as meshes allow; the trainings on one device each
    plan = [
        placed(0, 2, 5.0, dp=2),
        placed(0, 1, 1.0),
        placed(0, 1, 2.0),
        placed(1, 1, 3.5),
        placed(0, 1, 7.0),
        placed(1, 1, 4.0),
    ]
    found = Evaluator(job()).plan(plan)
    moved = found.turns[0].moved_s
    assert moved > 0.0  # the second device lacks all of the actor
    assert found.time_s == pytest.approx(moved + 5.0 + 3.5 + 7.0)
    assert found.turns[5].end_s == pytest.approx(moved + 5.0 + 3.5 + 4.0)


@given(st.lists(st.floats(0.1, 9.0), min_size=6, max_size=6), st.integers(0, 3**6 - 1))
def test_a_timeline_keeps_to_needs_and_meshes(seconds, code):
    points = [(0, 1), (1, 1), (0, 2)]
    plan = [placed(*points[code // 3**i % 3], s) for i, s in enumerate(seconds)]
    evaluator = Evaluator(job())
    turns = evaluator.turns(plan)
    for i, turn in enumerate(turns):
        assert turn.end_s == pytest.approx(turn.start_s + turn.moved_s + seconds[i])
        assert all(turns[n].end_s <= turn.start_s for n in evaluator.needs[i])
    for i, j in product(range(6), range(6)):
        if i != j and plan[i].mesh.overlaps(plan[j].mesh):
            assert turns[i].end_s <= turns[j].start_s or turns[j].end_s <= turns[i].start_s
    longest = seconds[0] + max(seconds[1:4]) + max(seconds[4:])
    assert max(t.end_s for t in turns) >= longest - 1e-9


def test_memory_is_what_stays_and_the_largest_work():
    plan = [
        placed(0, 2, 1.0, work=5.0, weights=3.0),
        placed(0, 1, 1.0, resident=2.0, work=9.0),
        placed(1, 1, 1.0, resident=4.0, work=1.0),
        placed(1, 1, 1.0, work=1.0),
        placed(0, 2, 1.0, resident=10.0),
        placed(1, 1, 1.0, resident=20.0),
    ]
    evaluator = Evaluator(job())
    # generation has the cut and mesh of the actor's training, so it needs no second copy of the weights
    assert evaluator.memory_bytes(plan) == 4.0 + 10.0 + 20.0 + 5.0
    plan[0] = replace(plan[0], way=replace(plan[0].way, tp=2, dp=1))
    assert evaluator.memory_bytes(plan) == 4.0 + 10.0 + 20.0 + 8.0


def moved_s(source, target, per_node=8, num_devices=16):
    cluster = Cluster(device=DEVICE, num_devices=num_devices, devices_per_node=per_node)
    return reallocation_s(cluster, 1e12, source, target)


def place(first, size, tp=1, pp=1, dp=1):
    return Place(mesh=Mesh(first=first, num_devices=size), tp=tp, pp=pp, dp=dp)


def test_movements_by_hand():
    assert moved_s(place(0, 4, tp=4), place(0, 4, tp=4)) == 0.0
    # tp4 to tp2 dp2 in a node: each device has a quarter and needs half, so a quarter comes to each
    halves = moved_s(place(0, 4, tp=4), place(0, 4, tp=2, dp=2))
    quarter = 0.25e12 / NEAR
    assert quarter <= halves <= 2.0 * quarter + 1e-3
    # to another node: everything crosses, every device receives its half
    assert moved_s(place(0, 8, tp=8), place(8, 2, tp=2)) == pytest.approx(0.5e12 / FAR, rel=1e-3)
    # one holder, two far replicas that lack all: each receives the whole, and the holder sends it once
    assert moved_s(place(0, 1), place(8, 2, dp=2)) == pytest.approx(1e12 / FAR, rel=1e-3)
    # replicas that hold everything already receive nothing
    assert moved_s(place(0, 8, dp=8), place(0, 4, tp=2, dp=2)) == 0.0


CUTS = [(1, 1, 8), (2, 2, 2), (8, 1, 1), (1, 8, 1), (4, 1, 2), (1, 2, 4)]


@settings(max_examples=40)
@given(st.sampled_from(CUTS), st.sampled_from(CUTS), st.sampled_from([0, 8]))
def test_what_a_device_receives_is_what_it_lacks(source, target, first):
    """Against a slow count: the model as 64 x 64 grains, each device's grains as a set."""

    def grains(cut, start):
        tp, pp, dp = cut
        held = {}
        for rank in range(8):
            p, t = rank // (tp * dp), rank % tp
            grid = np.zeros((64, 64), dtype=bool)
            grid[p * 64 // pp : (p + 1) * 64 // pp, t * 64 // tp : (t + 1) * 64 // tp] = True
            held[start + rank] = grid
        return held

    has, needs = grains(source, 0), grains(target, first)
    infeasible = [(need & ~has[d] if d in has else need).mean() for d, need in needs.items()]
    rate = NEAR if first == 0 else FAR
    found = moved_s(place(0, 8, *source), place(first, 8, *target))
    assert found >= max(infeasible) * 1e12 / rate - 1e-6
    most_sent = 1.0 / (source[0] * source[1] * source[2])
    assert found <= max(*infeasible, most_sent) * 1e12 / rate + 1e-3
    assert (found == 0.0) == (max(infeasible) == 0.0)


def test_training_ways_are_the_training_floors_steps():
    one = job(MIDDLE, 8, batch=128)
    found = [w for w in ways(one, PPO[4], [8])[8] if (w.tp, w.pp, w.dp) == (4, 1, 2)]
    from_floor = step_of(
        one.training_job("actor", 32),
        columns_of([replace(columns_layout(w), micro_batch=w.micro_batch) for w in found]),
    )
    assert [w.time_s for w in found] == pytest.approx((4 * from_floor.time_s).tolist())
    assert [w.peak_bytes for w in found] == pytest.approx(from_floor.memory_bytes.tolist(), rel=1e-6)


def columns_layout(way):
    return TrainingLayout(tp=way.tp, pp=way.pp, dp=way.dp, recompute="full", sharding="zero1")


def test_reading_takes_about_a_quarter_of_learning_with_recomputation():
    one = job(SMALL, 1, batch=64)
    one = replace(one, framework=replace(one.framework, host_layer_s=0.0, host_collective_s=0.0, step_s=0.0))
    learn, read = (
        next(w.time_s for w in ways(one, PPO[i], [1])[1] if w.micro_batch == 8 and not w.is_offloaded) for i in (4, 2)
    )
    assert read / learn == pytest.approx(0.25, abs=0.04)


def test_generation_is_faster_with_more_devices_and_slower_with_more_tokens():
    best = {n: min(w.time_s for w in ways(job(MIDDLE, 8), PPO[0], [n])[n]) for n in (1, 2, 4, 8)}
    assert best[1] > best[2] > best[4] > best[8]
    longer = min(w.time_s for w in ways(job(MIDDLE, 8, output_tokens=256), PPO[0], [8])[8])
    assert 1.8 < longer / best[8] < 2.4


def test_a_frozen_model_may_wait_on_the_host_and_a_trained_one_may_not(node):
    assert any(w.is_offloaded for w in node.ways[2][8])
    for call in (0, 3, 4, 5):
        assert not any(w.is_offloaded for found in node.ways[call].values() for w in found)


def brute_force(space):
    """The best plan that fits of all assignments: for spaces small enough to count out."""
    evaluator = Evaluator(space.job)
    best, best_s = None, np.inf
    for placed in product(*(space.options(i) for i in range(len(space.ways)))):
        cost, fits = _cost(evaluator, list(placed))
        if fits and cost < best_s:
            best, best_s = placed, cost
    return evaluator.plan(best) if best else None


def test_the_search_finds_what_counting_out_finds():
    calls = (PPO[0], replace(PPO[2], needs=("generate",)), replace(PPO[4], needs=("reference",)))
    small = space_of(job(SMALL, 2, calls=calls))
    assert not isinstance(small, Infeasible)
    assert np.prod(small.num_options) < 40_000
    best, found = brute_force(small), search(small, num_proposals=2000)
    assert isinstance(found, Plan)
    assert best is not None
    assert found.fits
    assert best.time_s <= found.time_s * (1.0 + 1e-12)
    assert found.time_s <= 1.02 * best.time_s


def test_the_same_seed_finds_the_same_plan(node):
    first, again = (search(node, num_proposals=300, seed=7) for _ in range(2))
    assert isinstance(first, Plan)
    assert isinstance(again, Plan)
    assert first.placed == again.placed


def test_a_searched_plan_beats_plans_made_by_hand(node):
    found = searched.rule(node, searched.SearchedKnobs(num_proposals=1500))
    by_hand = symmetric.rule(node, symmetric.TECHNIQUE.knobs())
    assert isinstance(found, Plan)
    assert isinstance(by_hand, Plan)
    assert found.fits
    assert found.time_s < by_hand.time_s
    assert {p.way.cut for p in by_hand.placed} == {(8, 1, 1, "none")}
    assert all(t.moved_s == 0.0 for t in by_hand.turns)
    others = [zero3.rule(node, zero3.ShardedKnobs()), disjoint.rule(node, disjoint.DisjointKnobs())]
    assert all(isinstance(o, Plan) and o.time_s > 1.5 * found.time_s for o in others)
    assert len(describe(node.job.calls, found, node.job.cluster)) == 6


def test_dealt_out_parameters_are_gathered_for_every_token(node):
    plan = zero3.rule(node, zero3.ShardedKnobs())
    assert isinstance(plan, Plan)
    whole = 2.0 * MIDDLE.num_parameters
    assert plan.placed[0].way.time_s > 384 * 0.8 * whole * 7 / 8 / NEAR


def test_what_cannot_run_says_why():
    found = space_of(job(get_model("llama-2-70b"), 4))
    assert isinstance(found, Infeasible)
    assert "4 x" in found.what
    assert 16.0 * 69e9 / 4 < found.need < 40.0 * 69e9 / 4  # 16 bytes a parameter and what a pass needs
    small = space_of(job(SMALL, 4))
    assert not isinstance(small, Infeasible)
    refused = disjoint.rule(small, disjoint.DisjointKnobs())
    assert isinstance(refused, Infeasible)
    assert (refused.need, refused.have, refused.unit) == (5.0, 4.0, "devices")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ScenarioError, match="mini-batches"):
        job(batch=62)
    with pytest.raises(ScenarioError, match="no model for reward"):
        replace(job(), models=dict.fromkeys(("actor", "critic", "reference"), SMALL))
