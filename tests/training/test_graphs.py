"""Full-graph training: boundaries counted one by one, volumes by hand, parts that are found, and epochs that add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.training.graphs.epoch import Devices, aggregate_s, chunk_send_s, epoch, exchange_layer_s, layer_s
from orrery.training.graphs.graph import Graph, from_pairs, planted_graph
from orrery.training.graphs.partition import breadth_first, cut_edges, partition
from orrery.training.graphs.volume import GraphModel, enlarged, parts_of, volume

A100 = Devices(device=get_device("a100-sxm-40gb"), devices_per_node=4)
DEEP = GraphModel(name="gcn", num_layers=32, hidden_size=100)

PATH = from_pairs(4, np.array([0, 1, 2]), np.array([1, 2, 3]))


def social(seed: int = 0, degree: float = 12.0, inside_frac: float = 0.5) -> Graph:
    """A small graph of eight communities."""
    return planted_graph(1600, degree, num_communities=8, inside_frac=inside_frac, seed=seed)


def test_a_path_in_two_halves_by_hand():
    parts = parts_of(PATH, np.array([0, 0, 1, 1]))
    assert parts.vertices.tolist() == [2, 2]
    assert parts.edges.tolist() == [3, 3]
    assert parts.sent.tolist() == [1, 1]
    model = GraphModel(name="tiny", num_layers=3, hidden_size=2)
    assert volume(parts, model).total_bytes == 2 * 3 * 2 * 8.0
    whole = parts_of(PATH, np.zeros(4, dtype=np.int64))
    assert volume(whole, model, 2).total_bytes == 2 * 1 * 4 * 8.0
    assert volume(parts, model, 3).total_bytes == 96.0 + 2 * 2 * 4 * 8.0


def test_edges_are_undirected_and_single():
    graph = from_pairs(3, np.array([0, 1, 0, 2, 2]), np.array([1, 0, 1, 2, 0]))
    assert list(zip(graph.source.tolist(), graph.target.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (2, 0)]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 5))
def test_rows_sent_are_those_that_other_parts_read(seed, num_parts):
    draw = np.random.default_rng(seed)
    graph = from_pairs(20, draw.integers(0, 20, 60), draw.integers(0, 20, 60))
    where = np.concatenate([np.arange(num_parts), draw.integers(0, num_parts, 20 - num_parts)])
    found = parts_of(graph, where)
    needed = {(s, where[t]) for s, t in zip(graph.source.tolist(), graph.target.tolist(), strict=True)}
    sent = [sum(1 for s, p in needed if where[s] == part and p != part) for part in range(num_parts)]
    assert found.sent.tolist() == sent


def test_own_and_received_rows_are_enough_for_a_layer():
    graph, x = social(), np.random.default_rng(0).standard_normal((1600, 3))
    where = partition(graph, 4)
    whole = np.zeros_like(x)
    np.add.at(whole, graph.source, x[graph.target])
    for part in range(4):
        mine = where[graph.source] == part
        known = np.unique(np.concatenate([graph.target[mine], np.flatnonzero(where == part)]))
        received = known[where[known] != part]
        assert len(received) == sum(
            1 for v in range(1600) if where[v] != part and (where[graph.target[graph.source == v]] == part).any()
        )
        rows = np.full_like(x, np.nan)
        rows[known] = x[known]
        here = np.zeros_like(x)
        np.add.at(here, graph.source[mine], rows[graph.target[mine]])
        np.testing.assert_allclose(here[where == part], whole[where == part])


def test_two_cliques_are_found():
    edges = [(i, j) for base in (0, 10) for i in range(base, base + 10) for j in range(i + 1, base + 10)] + [(0, 10)]
    shuffled = np.random.default_rng(3).permutation(20)
    left, right = shuffled[np.array(edges)].T
    graph = from_pairs(20, left, right)
    where = partition(graph, 2)
    assert cut_edges(graph, where) == 1
    assert len(set(where[shuffled[:10]])) == len(set(where[shuffled[10:]])) == 1


@pytest.mark.parametrize("num_parts", [1, 3, 8])
def test_parts_are_equal_and_better_than_chance(num_parts):
    graph = social(inside_frac=0.8)
    where = partition(graph, num_parts)
    sizes = np.bincount(where, minlength=num_parts)
    assert sizes.max() - sizes.min() <= 1
    share = cut_edges(graph, where) * 2 / graph.num_edges
    chance = 1.0 - 1.0 / num_parts
    assert share <= 0.75 * chance
    if num_parts == 8:
        assert share < 0.5  # what was planted cuts 0.2 * 7 / 8


def test_breadth_first_reaches_every_vertex_once_and_neighbours_soon():
    graph = from_pairs(6, np.array([0, 1, 4]), np.array([1, 2, 5]))
    order = breadth_first(graph).tolist()
    assert sorted(order) == list(range(6))
    first = order.index(1) - 1
    assert order[first : first + 3] in ([0, 1, 2], [2, 1, 0])
    assert abs(order.index(4) - order.index(5)) == 1


def test_a_planted_graph_has_its_degree_its_communities_and_a_heavy_tail():
    graph = planted_graph(4000, 20.0, num_communities=4, inside_frac=1.0, seed=1)
    assert graph.degrees.mean() == pytest.approx(20.0, rel=0.1)
    assert graph.degrees.max() > 10 * np.median(graph.degrees)
    frontier = [int(graph.source[0])]
    starts = graph.starts
    seen = set(frontier)
    while frontier:
        v = frontier.pop()
        for u in graph.target[starts[v] : starts[v + 1]].tolist():
            if u not in seen:
                seen.add(u)
                frontier.append(u)
    assert len(seen) <= 1000  # nobody leaves a community
    with pytest.raises(ScenarioError, match="planted graph"):
        planted_graph(10, 2.0, num_communities=2, inside_frac=1.5)


def test_the_same_seed_draws_the_same_graph():
    assert (social(5).target == social(5).target).all()
    assert social(5).num_edges != social(6).num_edges


def test_the_reduction_is_copies_times_layers_over_borders():
    graph = social()
    eight, whole = parts_of(graph, partition(graph, 8)), parts_of(graph, np.zeros(1600, dtype=np.int64))
    for layers in (8, 16, 32, 64, 128):
        model = GraphModel(name="gcn", num_layers=layers, hidden_size=100)
        reduction = volume(eight, model).total_bytes / volume(whole, model, 8).total_bytes
        assert reduction == pytest.approx(layers * eight.copies_ratio / 7.0)
    assert 0.0 < eight.copies_ratio < 7.0


def test_passing_the_first_layer_on_doubles_a_border_only():
    whole = parts_of(PATH, np.zeros(4, dtype=np.int64))
    first = GraphModel(name="gcnii", num_layers=32, hidden_size=100, passes_first=True)
    assert volume(whole, first, 4).total_bytes == 2 * volume(whole, DEEP, 4).total_bytes
    halves = parts_of(PATH, np.array([0, 0, 1, 1]))
    assert volume(halves, first).total_bytes == volume(halves, DEEP).total_bytes


def test_a_hybrid_sends_less_than_parts_and_more_than_stages():
    graph = social()
    sent = [
        volume(parts_of(graph, partition(graph, p)), DEEP, s).total_bytes for p, s in ((8, 1), (4, 2), (2, 4), (1, 8))
    ]
    assert sent == sorted(sent, reverse=True)


def test_an_enlarged_graph_copies_its_vertices_as_often():
    small = parts_of(social(), partition(social(), 4))
    large = enlarged(small, 160_000, 5_000_000)
    assert large.copies_ratio == pytest.approx(small.copies_ratio, rel=1e-3)
    assert large.edges.sum() == pytest.approx(5_000_000, rel=1e-3)


def test_one_device_neither_sends_nor_waits():
    whole = parts_of(social(), np.zeros(1600, dtype=np.int64))
    alone = epoch(whole, DEEP, A100)
    forward_s, backward_s = layer_s(whole, DEEP, A100.device)
    assert alone.communication_s == alone.idle_s == 0.0
    assert alone.time_s == pytest.approx(32 * (forward_s + backward_s))


def test_stages_take_chunks_and_fill_times_the_longer_of_work_and_way():
    whole = enlarged(parts_of(social(), np.zeros(1600, dtype=np.int64)), 200_000, 4_000_000)
    forward_s, backward_s = layer_s(whole, DEEP, A100.device, 16)
    way_s = chunk_send_s(whole, DEEP, A100, 16)
    found = epoch(whole, DEEP, A100, num_stages=8, num_chunks=16)
    assert found.time_s == pytest.approx(23 * (max(4 * forward_s, way_s) + max(4 * backward_s, way_s)))
    assert found.send_s == pytest.approx(32 * way_s)
    assert epoch(whole, DEEP, A100, num_stages=8, num_chunks=1).idle_s > found.idle_s


def test_parts_wait_for_the_busiest():
    graph = social()
    parts = parts_of(graph, partition(graph, 8))
    found = epoch(parts, DEEP, A100)
    assert found.exchange_s == pytest.approx(64 * exchange_layer_s(parts, DEEP, A100))
    assert found.idle_s == pytest.approx(0.0, abs=1e-12)
    shared = epoch(parts, DEEP, Devices(device=A100.device, devices_per_node=8))
    assert shared.exchange_s < found.exchange_s


def test_gathering_is_bound_by_memory():
    more, fewer = (aggregate_s(1, edges, DEEP, A100.device) for edges in (2_000_000, 1_000_000))
    assert more - fewer == pytest.approx(1_000_000 * 408.0 / A100.device.memory_bandwidth_bytes_per_s)


def test_stages_divide_the_layers():
    whole = parts_of(PATH, np.zeros(4, dtype=np.int64))
    with pytest.raises(ScenarioError, match="5 stages of 32"):
        epoch(whole, DEEP, A100, num_stages=5)
    with pytest.raises(ScenarioError, match="33 for 32"):
        volume(whole, DEEP, 33)
    with pytest.raises(ScenarioError, match="9 parts of 4"):
        partition(PATH, 9)
