"""Graphs of a few vertices: edges drawn from known numbers, parts, swaps, volumes, and an epoch of round times."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.training.graphs import epoch as epochs
from orrery.training.graphs import graph as graphs
from orrery.training.graphs import partition as parting
from orrery.training.graphs.epoch import Devices, Epoch, chunk_send_s, epoch, exchange_layer_s, layer_s
from orrery.training.graphs.graph import _by_weight, _weights, from_pairs, planted_graph
from orrery.training.graphs.partition import _reached, _sweep, breadth_first, cut_edges, partition
from orrery.training.graphs.volume import GraphModel, Parts, enlarged, parts_of, volume


def ints(*values):
    return np.array(values, dtype=np.int64)


def square():
    """0-1, 1-2, 2-3, 3-0, given twice and with a loop."""
    return from_pairs(5, ints(0, 1, 2, 3, 1, 4), ints(1, 2, 3, 0, 0, 4))


def test_edges_stand_once_from_either_end():
    found = square()
    assert found.num_edges == 8
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [
        (0, 1),
        (0, 3),
        (1, 0),
        (1, 2),
        (2, 1),
        (2, 3),
        (3, 0),
        (3, 2),
    ]
    assert found.degrees.tolist() == [2, 2, 2, 2, 0]
    assert found.starts.tolist() == [0, 2, 4, 6, 8, 8]


def test_weights_of_a_power_law():
    """Density w^-2 between 1 and 100: half lie below 1 / (1 - 0.5 x 0.99)."""
    assert _weights(np.array([0.0, 0.5, 1.0]), 2.0).tolist() == pytest.approx([1.0, 1 / 0.505, 100.0])


def test_vertices_by_weight():
    """Weights 1, 2, 1: running sums 1, 3, 4."""
    weights = np.array([1.0, 2.0, 1.0])
    low, high = np.zeros(4), np.full(4, 4.0)
    assert _by_weight(np.array([0.0, 0.25, 0.74, 1.0]), weights, low, high).tolist() == [0, 1, 1, 2]
    assert _by_weight(np.array([0.5]), weights, np.array([1.0]), np.array([3.0])).tolist() == [1]


def test_a_planted_graph_from_known_numbers(monkeypatch):
    """Six vertices of one weight in communities 0 1 0 1 0 1; three edges start at 0, 2 and 4. The first stays inside
    (0, 2, 4 stand first): half way is 2. The second too, at 5/6: 4. The third goes anywhere, half way: the fourth in
    that order, 1."""

    class Draws:
        calls = iter(
            [
                np.zeros(6),  # all weights are one
                np.array([0.1, 0.4, 0.7]),
                np.array([0.0, 0.0, 1.0]),  # inside, inside, anywhere
                np.array([0.5, 0.84, 0.51]),
            ]
        )

        def random(self, count):
            return next(self.calls)

        def permutation(self, count):
            return np.arange(count)

    monkeypatch.setattr(graphs, "stream", lambda seed, name: Draws())
    found = planted_graph(6, 1.0, num_communities=2, inside_frac=0.5)
    edges = sorted(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert edges == [(0, 2), (1, 4), (2, 0), (2, 4), (4, 1), (4, 2)]
    for bad in ({"inside_frac": 1.1}, {"num_communities": 0}, {"exponent": 1.0}):
        with pytest.raises(ScenarioError, match="planted graph"):
            planted_graph(6, 1.0, **({"num_communities": 2, "inside_frac": 0.5} | bad))


# --- parts


def path():
    """0-4-1-5-2-6-3-7: a path whose numbers jump."""
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    return from_pairs(8, ints(*order[:-1]), ints(*order[1:]))


def test_breadth_first_from_an_end():
    assert breadth_first(path()).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert breadth_first(square()).tolist() == [4, 0, 1, 3, 2]


def test_parts_of_a_path_cut_one_edge():
    found = partition(path(), 2)
    assert cut_edges(path(), found) == 1
    assert np.bincount(found).tolist() == [4, 4]
    assert partition(path(), 1).tolist() == [0] * 8
    assert np.bincount(partition(path(), 3)).tolist() == [3, 3, 2]
    for bad in (0, 9):
        with pytest.raises(ScenarioError, match="partition"):
            partition(path(), bad)


def test_pairs_that_gain_are_swapped(monkeypatch):
    """Two triangles with a vertex exchanged: swapping the two of them leaves no cut but the bridge's."""
    two = from_pairs(6, ints(0, 1, 0, 3, 4, 3, 2), ints(1, 2, 2, 4, 5, 5, 3))
    parts = ints(0, 0, 1, 0, 1, 1)
    assert cut_edges(two, parts) == 5
    _sweep(two, parts, 2, np.random.default_rng(0))
    assert parts.tolist() == [0, 0, 0, 1, 1, 1]
    assert cut_edges(two, parts) == 1
    _sweep(two, parts, 2, np.random.default_rng(0))
    assert parts.tolist() == [0, 0, 0, 1, 1, 1]  # nothing gains
    monkeypatch.setattr(parting, "breadth_first", lambda graph: ints(0, 1, 3, 2, 4, 5))
    assert cut_edges(two, partition(two, 2)) == 1


def test_neighbours_of_moved_vertices():
    graph = square()
    assert _reached(graph, graph.starts, ints(0, 2)).tolist() == [0, 2, 0, 2, 0]
    assert _reached(graph, graph.starts, ints(4)).tolist() == [0] * 5
    assert _reached(graph, graph.starts, ints(3)).tolist() == [1, 0, 1, 0, 0]


def test_rows_that_parts_send():
    """0 and 1 against 2, 3 and 4: 1 sends to 2 and 0 to 3, and the reverse."""
    found = parts_of(square(), ints(0, 0, 1, 1, 1))
    assert (found.vertices.tolist(), found.edges.tolist(), found.sent.tolist()) == ([2, 3], [4, 4], [2, 2])
    assert (found.num_parts, found.copies_ratio) == (2, 4 / 5)
    # a vertex with two neighbours in a part sends once, with neighbours in two parts twice
    star = from_pairs(4, ints(0, 0, 0), ints(1, 2, 3))
    assert parts_of(star, ints(0, 1, 1, 2)).sent.tolist() == [2, 2, 1]
    large = enlarged(found, 50, 40)
    assert (large.vertices.tolist(), large.edges.tolist()) == ([20, 30], [20, 20])
    assert (large.sent.tolist(), large.copies_ratio) == ([20, 20], 4 / 5)


# --- bytes and seconds


MODEL = GraphModel(name="gcn", num_layers=4, hidden_size=8)
PARTS = Parts(num_vertices=10, vertices=ints(4, 6), edges=ints(30, 20), sent=ints(3, 5))


def test_bytes_of_an_epoch():
    """A row is 8 x 4 bytes; layers of parts send 8 rows each way, stages 10 over three borders, twice of GCNII's."""
    assert (MODEL.row_bytes, MODEL.border_bytes) == (32.0, 32.0)
    found = volume(PARTS, MODEL, 4)
    assert (found.graph_bytes, found.pipeline_bytes) == (2 * 4 * 8 * 32.0, 2 * 3 * 10 * 32.0)
    assert found.total_bytes == 2048.0 + 1920.0
    deep = GraphModel(name="gcnii", num_layers=4, hidden_size=8, passes_first=True)
    assert volume(PARTS, deep, 2).pipeline_bytes == 2 * 1 * 10 * 64.0
    assert volume(PARTS, MODEL).pipeline_bytes == 0.0
    assert (MODEL.num_products, MODEL.num_elementwise) == (1, 2)
    for bad in (0, 5):
        with pytest.raises(ScenarioError, match="stages"):
            volume(PARTS, MODEL, bad)


@pytest.fixture
def priced(monkeypatch):
    """A kernel takes 1 s for a product, 2 s for a norm, 0.5 s for an add; what was asked for is told."""
    told = []

    def predict(op, device):
        told.append(op)
        kind = getattr(op, "kind", "product")
        return SimpleNamespace(time_s={"product": 1.0, "norm": 2.0, "add": 0.5}[kind])

    monkeypatch.setattr(epochs.kernels, "predict", predict)
    return told


DEVICE = SimpleNamespace(memory_bandwidth_bytes_per_s=100.0)


def test_a_layer_of_the_fullest_part(priced):
    """6 rows and 30 edges in two chunks: 3 and 15. 15 x (32 + 8) + 3 x 32 bytes at 100/s, a launch of 0.5 s; a product
    and two norms; backward the product of the weights on top."""
    forward_s, backward_s = layer_s(PARTS, MODEL, DEVICE, 2)
    assert forward_s == pytest.approx(6.96 + 0.5 + 1.0 + 2 * 2.0)
    assert backward_s == pytest.approx(forward_s + 1.0)
    launch, product, gradient, norm = priced
    assert (product.m, product.n, product.k) == (3, 8, 8)
    assert (gradient.m, gradient.n, gradient.k) == (8, 8, 3)
    assert (norm.tokens, norm.width, launch.tokens, launch.width) == (3, 16, 1, 8)
    three = GraphModel(name="x", num_layers=4, hidden_size=8, num_products=3, num_elementwise=1)
    forward_s, backward_s = layer_s(PARTS, three, DEVICE, 100)
    assert forward_s == pytest.approx((40 + 32) / 100 + 0.5 + 3.0 + 2.0)
    assert backward_s == pytest.approx(forward_s + 3.0)


def test_rows_on_their_way(monkeypatch):
    """The busiest of two parts sends 5 rows of 32 bytes, half of the buffer; in two chunks. Stages send 6 rows each."""
    told = []

    def predict(work, device):
        told.append((work.kind, work.num_devices, work.message_bytes, work.devices_per_node))
        return SimpleNamespace(time_s=0.25)

    monkeypatch.setattr(epochs.network, "predict", predict)
    devices = Devices(device=DEVICE, devices_per_node=8)
    assert exchange_layer_s(PARTS, MODEL, devices, 2) == 0.25
    assert chunk_send_s(PARTS, MODEL, devices, 2) == 0.25
    assert told == [("all_to_all", 2, 5 * 32.0 / 2 * 2, 2), ("send_recv", 2, 6 * 32.0 / 2, 1)]
    lone = Parts(num_vertices=10, vertices=ints(10), edges=ints(50), sent=ints(0))
    assert exchange_layer_s(lone, MODEL, devices) == 0.0
    many = Parts(num_vertices=40, vertices=ints(*[4] * 10), edges=ints(*[9] * 10), sent=ints(*[9] * 10))
    exchange_layer_s(many, MODEL, devices)
    assert told[2] == ("all_to_all", 10, 9 * 32.0 * 10 / 9, 8)


def test_an_epoch_in_stages_and_chunks(monkeypatch):
    """Two layers a stage of 1 s forward and 3 s backward, 0.5 s of exchange each; sends of 4 s. Four chunks through two
    stages are five steps of max(3, 4) and max(7, 4) s; 4 x 8 s are work and 4 x 2 exchange."""
    monkeypatch.setattr(epochs, "layer_s", lambda parts, model, device, chunks: (1.0, 3.0))
    monkeypatch.setattr(epochs, "exchange_layer_s", lambda parts, model, devices, chunks: 0.5)
    monkeypatch.setattr(epochs, "chunk_send_s", lambda parts, model, devices, chunks: 4.0)
    devices = Devices(device=DEVICE, devices_per_node=8)
    found = epoch(PARTS, MODEL, devices, num_stages=2, num_chunks=4)
    assert (found.compute_s, found.exchange_s, found.send_s) == (32.0, 8.0, 32.0)
    assert found.time_s == pytest.approx(5 * 4.0 + 5 * 7.0)
    assert (found.idle_s, found.communication_s) == (pytest.approx(15.0), 40.0)
    alone = epoch(PARTS, MODEL, devices)
    assert alone == Epoch(compute_s=16.0, exchange_s=4.0, send_s=0.0, idle_s=0.0)
    for bad in ({"num_stages": 3}, {"num_chunks": 0}):
        with pytest.raises(ScenarioError, match="stages"):
            epoch(PARTS, MODEL, devices, **bad)
