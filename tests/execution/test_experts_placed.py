"""Experts placed by their routes: programs against every arrangement, ways by hand, nothing gained from nothing."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from orrery.base.program import Program, SparseRows, solved
from orrery.execution.batch import decodes_of
from orrery.execution.experts.affinity import Affinity, loads, transitions
from orrery.execution.experts.placed import busiest_ratio, crowded, placed, way_scales
from orrery.execution.experts.placement import distances, in_order
from orrery.execution.experts.routes import routes_of_law, routes_of_trace
from orrery.execution.experts.tuned import tuned
from orrery.execution.shard import cache_of
from orrery.execution.step import step
from orrery.kernels.moe.routing import layered_table
from orrery.kernels.ops import Popularity
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario

MIXTRAL = {
    "model": "mixtral-8x7b",
    "device": "h100-sxm",
    "dp": 4,
    "ep": 4,
    "batch": 8,
    "input_tokens": 128,
    "output_tokens": 16,
    "engine_version": "0.11.0",
    "all2all_backend": "all-to-all",
}
LAW = "zipf:0.4+affinity:0.5"


def deployment(**settings):
    return resolve(read_scenario(MIXTRAL | settings)).deployment


def test_routes_are_counted_by_hand():
    """Two tokens, two layers, two choices: token 0 goes 0 -> {1, 2}, token 1 goes 2 -> {0, 1}."""
    chosen = np.array([[[0, 1], [1, 2]], [[2, 0], [0, 1]]])
    found = routes_of_trace(chosen, 3)
    assert found.loads_frac.tolist() == [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    assert found.moves_frac[0].tolist() == [[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert found.judged_frac[0].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]]


def _cost(moves, where, per_node):
    distance = distances(int(where.max()) + 1, per_node)
    ways = zip(moves, where[:-1], where[1:], strict=True)
    return float(np.mean([(m * distance[a[:, None], b[None, :]]).sum() for m, a, b in ways]))


@pytest.mark.parametrize("per_node", [4, 2])
def test_the_programs_find_the_best_of_all_arrangements(per_node):
    """An expert a device: of the 24 x 24 x 24 arrangements of three layers none costs less, and the bound holds."""
    moves = transitions(Affinity(num_experts=4, num_layers=3, followed_frac=0.5, num_followers=2, skew_ratio=0.7))
    found = tuned(moves, 4, per_node)
    orders = [np.array(p) for p in permutations(range(4))]
    best = min(_cost(moves, np.array(three), per_node) for three in product(orders, orders, orders))
    assert found.way_bound_ratio <= best + 1e-6
    assert best - 1e-9 <= found.way_ratio <= best * 1.03
    assert _cost(moves, found.where, per_node) == pytest.approx(found.way_ratio)


def test_groups_are_as_even_as_any():
    """Loads 5, 4, 3, 3, 3 and 0 on two devices with three each: 9 and 9; the greedy way ends with 10 and 8."""
    load = np.array([5.0, 4.0, 3.0, 3.0, 3.0, 0.0]) / 18.0
    moves = np.outer(load, load)[None]
    found = tuned(moves, 2, 2)
    each = [np.bincount(row, weights=load, minlength=2).max() for row in found.where]
    assert each == pytest.approx([0.5, 0.5])
    assert found.load_gap_frac == pytest.approx(0.0, abs=1e-6)


def test_sparse_rows_are_the_same_program():
    rows = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    program = Program(
        cost=np.array([1.0, 3.0, 1.0]),
        matrix=rows,
        row_low=np.ones(2),
        row_high=np.ones(2),
        most=np.ones(3),
        is_whole=np.ones(3, np.bool_),
    )
    sparse = SparseRows(start=np.array([0, 2, 4]), index=np.array([0, 1, 1, 2]), value=np.ones(4))
    one, other = solved(program), solved(replace(program, matrix=sparse))
    assert one is not None
    assert other is not None
    assert one.x.tolist() == other.x.tolist() == [1.0, 0.0, 1.0]
    assert one.bound == pytest.approx(2.0)


def test_ways_over_two_nodes_by_hand():
    """Of 4 ranks, 2 a node: half of the ways leave the node, a quarter more the device."""
    found = placed(deployment(expert_loads=LAW, expert_placement="copied-context"))
    assert found is not None
    found = replace(found, leaves_device_frac=0.75, leaves_node_frac=0.5)
    assert way_scales(found, 4, 2) == pytest.approx((0.5 * 4 / 2, 0.25 * 2 / 1))


def test_in_order_is_absent_to_the_bit():
    batch = decodes_of(np.array([1, 7, 64]), 300)
    for law in (LAW, "zipf:0.5", "balanced"):
        absent = step(deployment(expert_loads=law), batch).time_s
        ordered = step(deployment(expert_loads=law, expert_placement="in-order"), batch).time_s
        assert absent.tolist() == ordered.tolist()


@pytest.mark.parametrize("method", ["exflow", "copied-context", "moetuner"])
def test_nothing_is_gained_from_even_loads_without_affinity(method):
    batch = decodes_of(np.array([1, 64]), 300)
    for law in ("zipf:0", "balanced"):
        absent = step(deployment(expert_loads=law), batch).time_s
        assert step(deployment(expert_loads=law, expert_placement=method), batch).time_s.tolist() == absent.tolist()


def test_affinity_alone_shortens_the_ways_and_more_of_it_more():
    ways = []
    for share in (0.2, 0.5, 0.9):
        found = placed(deployment(expert_loads=f"zipf:0+affinity:{share}", expert_placement="exflow"))
        assert found is not None
        ways.append(found.leaves_device_frac)
        assert found.leaves_device_frac == pytest.approx((1 - share) * 0.75, abs=0.03)
    assert ways == sorted(ways, reverse=True)


def test_copied_context_takes_memory_and_one_exchange_goes():
    plain, copied = deployment(expert_loads=LAW), deployment(expert_loads=LAW, expert_placement="copied-context")
    assert cache_of(copied).bytes_per_token == 4 * cache_of(plain).bytes_per_token
    assert plain.num_contexts == 1
    batch = decodes_of(np.array([64]), 300)
    ways = [{p.name: float(p.time_s[0]) for p in step(d, batch).parts if p.group == "network"} for d in (plain, copied)]
    assert set(ways[0]) == {"dispatch", "combine"}
    assert ways[1]["combine"] < ways[0]["combine"]  # half of two choices
    assert ways[1]["copied context"] > 0.0


def test_the_fullest_rank_is_the_busiest():
    """Two layers, two ranks: 0.7 and 0.6 of the loads on one rank is 1.3 of the mean."""
    law = Popularity(layers=((0.4, 0.3, 0.2, 0.1), (0.1, 0.3, 0.2, 0.4)))
    d = replace(deployment(expert_loads="balanced"), expert_loads=law)
    d = replace(d, layout=replace(d.layout, dp=2, ep=2))
    assert busiest_ratio(d) == pytest.approx((1.4 + 1.2) / 2)
    assert crowded(d, (batch := decodes_of(np.array([10]), 5))) is batch


def test_a_layered_table_is_the_mean_of_its_layers():
    law = Popularity(layers=((0.5, 0.25, 0.15, 0.1), (0.25, 0.25, 0.25, 0.25)))
    table = layered_table(4, 1, 1, law)
    alone = [layered_table(4, 1, 1, Popularity(layers=(row,))) for row in law.layers]
    assert table[:, 1] == pytest.approx((alone[0][:, 1] + alone[1][:, 1]) / 2)
    two = layered_table(4, 1, 2, Popularity(layers=law.layers, ranks=((0, 1, 0, 1), (0, 1, 0, 1))))
    assert (two[10:, 0] <= layered_table(4, 1, 2, law)[10:, 0] + 1e-9).all()  # 0.65 of the loads, not 0.75


def test_loads_of_a_law_add_up():
    routes = routes_of_law(8, 6, 0.8, 0.3)
    assert routes.loads_frac.sum(axis=1) == pytest.approx(1.0)
    assert routes.loads_frac[1:] == pytest.approx(loads(routes.moves_frac)[1:])
    assert in_order(6, 8, 4).shape == routes.loads_frac.shape
