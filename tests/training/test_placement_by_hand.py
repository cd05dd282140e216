"""Placements on a made-up mesh: shapes that a kernel sees, exchanges, memory under two rules, and what choices cost."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import placed_slices
import pytest

from orrery.models.model import SoftmaxAttention
from orrery.training.placement import cost, mesh, redco, search
from orrery.training.placement.conversion import Step, orders, steps_s
from orrery.training.placement.cost import OpCost, _inner_s, op_cost, update_s
from orrery.training.placement.graph import Graph, Heads, Op, Sizes, Tensor, norm, transformer_layer
from orrery.training.placement.mesh import Mesh
from orrery.training.placement.redco import Matrix, _activations, _held, training_memory
from orrery.training.placement.search import Plan, Priced, Problem
from orrery.training.placement.signature import num_ways, signatures
from orrery.training.placement.state import BROADCAST, PARTIAL, local_shape, num_slices, split

DEVICE = SimpleNamespace(memory_bandwidth_bytes_per_s=1000.0, devices_per_node=8)
GRID = Mesh(device=DEVICE, shape=(2, 4))


@pytest.fixture
def asked(monkeypatch):
    """A product takes 1 s, attention 2 s, anything else 3 s; a collective a byte a second."""
    told = []

    def predict(op, device):
        told.append(op)
        return SimpleNamespace(time_s={"Gemm": 1.0, "AttentionPrefill": 2.0}.get(type(op).__name__, 3.0))

    monkeypatch.setattr(cost.kernels, "predict", predict)
    monkeypatch.setattr(mesh.network, "predict", lambda work, device: SimpleNamespace(time_s=work.message_bytes))
    return told


def test_groups_along_the_axes_of_a_mesh():
    """Members of the outer axis stand four apart: two of a node of eight are in one; of the inner axis all four."""
    assert GRID.num_devices == 8
    outer, inner = GRID.collective("all_reduce", 0, 7.0), GRID.collective("all_gather", 1, 9.0)
    assert (outer.num_devices, outer.devices_per_node, outer.message_bytes) == (2, 2, 7.0)
    assert (inner.num_devices, inner.devices_per_node, inner.kind) == (4, 8, "all_gather")
    assert Mesh(device=DEVICE, shape=(2, 4), devices_per_node=2).collective("x", 0, 1.0).devices_per_node == 1
    lone = SimpleNamespace(devices_per_node=0)
    assert Mesh(device=lone, shape=(2,)).collective("x", 0, 1.0).devices_per_node == 1


def test_slices():
    both = (split(0), split(0))
    assert (num_slices(both, (2, 4)), num_slices(both, (2, 4), axis=1)) == (8, 1)
    assert local_shape((16, 6), (split(0), split(1)), (2, 3)) == (8, 2)
    assert local_shape((16, 6), (BROADCAST, PARTIAL), (2, 3)) == (16, 6)


def tensors():
    def tensor(name, letters, shape, role="value"):
        return Tensor(name=name, letters=letters, shape=shape, role=role)

    found = [
        tensor("x", "th", (32, 16), "input"),
        tensor("w", "ha", (16, 64), "weight"),
        tensor("y", "ta", (32, 64)),
        tensor("z", "ta", (32, 64)),
    ]
    return {t.name: t for t in found}


PRODUCT = Op(name="product", kind="matmul", inputs=("x", "w"), output="y", splits="tha", linear=((0,), (1,)))
ATTENTION = Op(
    name="attention",
    kind="attention",
    inputs=("y",),
    output="z",
    splits="ta",
    heads=Heads(sequence_tokens=8, head_size=4),
)
NORM = replace(norm("norm", "y", "z"), splits="ta", inner="a")
PIECES = {"t": 8, "h": 16, "a": 16}


def graph(*ops):
    return Graph(tensors=tensors(), ops=ops, pieces=PIECES)


def chosen(op, of, *letters):
    """A signature for each axis of the mesh, by the letter that it cuts."""
    found = {s.letter: s for s in signatures(op, of) if s.letter or s.output == BROADCAST}
    return tuple(found[letter] for letter in letters)


def test_products_that_a_device_sees(asked):
    """32 x 16 by 16 x 64: tokens cut in two and outputs in four: 16 x 16 by 16 x 16, and both ways back."""
    of = graph(PRODUCT)
    found = op_cost(PRODUCT, chosen(PRODUCT, of, "t", "a"), of, GRID)
    assert (found.compute_s, found.inner_s, found.total_s) == (3.0, 0.0, 3.0)
    assert [(g.m, g.n, g.k) for g in asked] == [(16, 16, 16)] * 3
    asked.clear()
    op_cost(PRODUCT, chosen(PRODUCT, of, "", "h"), of, GRID)
    assert [(g.m, g.n, g.k) for g in asked] == [(32, 64, 4), (32, 4, 64), (4, 64, 32)]
    assert OpCost(compute_s=1.0, inner_s=2.0).total_s == 3.0


def test_attention_of_whole_heads(asked):
    """16 of 64 wide are four heads of four; 16 of 32 tokens two sequences of eight; backward 2.5 times."""
    of = graph(PRODUCT, ATTENTION)
    found = op_cost(ATTENTION, chosen(ATTENTION, of, "t", "a"), of, GRID)
    assert found.compute_s == 7.0
    work = asked[0]
    assert (work.batch, work.query_tokens, work.context_tokens) == (2, 8, 8)
    assert (work.num_heads, work.num_kv_heads, work.head_size) == (4, 4, 4)


def test_sums_inside_a_cut_norm(asked):
    """Two vectors of four bytes for each of 16 tokens, forward and backward, over the axis that cuts the width."""
    of = graph(PRODUCT, NORM)
    cut = chosen(NORM, of, "t", "a")
    found = op_cost(NORM, cut, of, GRID)
    assert (found.compute_s, found.inner_s) == (6.0, 2 * 2 * 4.0 * 16)
    assert (asked[0].tokens, asked[0].width) == (16, 16)
    assert _inner_s(NORM, chosen(NORM, of, "a", "a"), (32, 8), GRID) == 2 * 2 * 2 * 4.0 * 32
    flat = Mesh(device=DEVICE, shape=(2, 1))
    assert _inner_s(NORM, cut, (16, 64), flat) == 0.0
    loss = Op(name="loss", kind="cross_entropy", inputs=("y",), output="z", splits="t")
    op_cost(loss, chosen(loss, graph(PRODUCT, loss), "t", ""), graph(PRODUCT, loss), GRID)
    assert (asked[-1].kind, asked[-1].tokens, asked[-1].width) == ("softmax", 16, 64)


def test_an_update_reads_and_writes_28_bytes_a_parameter():
    assert update_s(tensors()["w"], 8, GRID) == pytest.approx(28 * 1024 / 8 / 1000)
    assert tensors()["w"].bytes == 2048.0


def test_buffers_of_a_conversion(asked):
    """A gather counts what is held at its end, a scatter what is held at its start; axes of one device cost nothing."""
    gather = next(orders((split(0), split(1)), (split(0), BROADCAST)))
    assert [s.message_bytes(800.0, (2, 4)) for s in gather] == [400.0]
    scatter = Step(mesh_axis=1, before=PARTIAL, after=split(0), held=(split(1), PARTIAL))
    assert (scatter.collective, scatter.message_bytes(800.0, (2, 4))) == ("reduce_scatter", 400.0)
    assert steps_s(gather, 800.0, GRID) == 400.0
    assert steps_s(gather, 800.0, Mesh(device=DEVICE, shape=(2, 1))) == 0.0
    kept = Step(mesh_axis=0, before=BROADCAST, after=split(0), held=(BROADCAST,))
    assert (kept.collective, steps_s((kept,), 800.0, GRID)) == ("", 0.0)


def test_an_outer_axis_waits_for_inner_cuts_of_the_same_axis():
    """To begin to cut axis 0 outside of an inner cut of it, that one is gathered before and made again after."""
    steps = next(orders((BROADCAST, split(0)), (split(0), split(0))))
    assert [(s.mesh_axis, str(s.before), str(s.after)) for s in steps] == [
        (1, "S(0)", "B"),
        (0, "B", "S(0)"),
        (1, "B", "S(0)"),
    ]
    free = next(orders((BROADCAST, split(1)), (split(0), split(1))))
    assert [(s.mesh_axis, str(s.after)) for s in free] == [(0, "S(0)")]


def test_letters_by_ways_and_pieces():
    of = graph(PRODUCT)
    assert num_ways(chosen(PRODUCT, of, "t", "t"), (2, 4)) == {"t": 8}
    assert num_ways(chosen(PRODUCT, of, "t", ""), (2, 4)) == {"t": 2}
    problem = Problem(graph=of, mesh=Mesh(device=DEVICE, shape=(3,)))
    assert [s[0].letter for s in problem.signatures(PRODUCT)] == ["", ""]  # nothing divides by three; x may be partial
    assert len(Problem(graph=of, mesh=GRID).placements(of.tensors["w"])) == 9
    assert problem.placements(of.tensors["w"]) == ((BROADCAST,),)
    given = Problem(graph=of, mesh=GRID, given={"x": (PARTIAL, PARTIAL)})
    assert given.placements(of.tensors["x"]) == ((PARTIAL, PARTIAL),)
    assert [t.name for t in given.sources()] == ["x"]
    assert [t.name for t in replace(given, gathers_weights=True).sources()] == ["x", "w"]
    assert (given.producer("y"), given.producer("x")) == (PRODUCT, None)


def test_edges_and_weights_in_seconds(monkeypatch):
    """A value forward and its gradient back; a weight gathered twice and its gradient brought home."""
    told = []

    def seconds(before, after, size, mesh):
        told.append((str(before[0]), str(after[0]), size))
        return {("S(0)", "B"): 1.0, ("P", "S(0)"): 10.0, ("B", "B"): 0.0, ("P", "B"): 100.0}.get(told[-1][:2], 1000.0)

    monkeypatch.setattr(search, "conversion_s", seconds)
    problem = Problem(graph=graph(PRODUCT), mesh=Mesh(device=DEVICE, shape=(2,)))
    value = tensors()["y"]
    assert problem.edge_s(value, (split(0),), (BROADCAST,)) == 11.0
    assert problem.edge_s(replace(value, has_gradient=False), (split(0),), (BROADCAST,)) == 1.0
    assert problem.weight_s(tensors()["w"], (split(0),), (BROADCAST,)) == 12.0
    assert told[-1] == ("P", "S(0)", 2048.0)


def test_bytes_at_a_price():
    table = search.Table(variables=("a",), costs_s=np.array([1.0, 2.0]))
    priced = Priced(table=table, held_bytes=(10.0, 20.0))
    assert priced.at(0.5).costs_s.tolist() == [6.0, 12.0]
    assert priced.at(0.0) is table
    assert Priced(table=table).at(9.0) is table
    plan = Plan(
        signatures={}, inputs={}, weights={}, compute_s=1.0, inner_s=2.0, conversion_s=4.0, weights_s=8.0,
        update_s=16.0, weight_bytes=0.0,
    )  # fmt: skip
    assert plan.time_s == 31.0


# --- operators on slices


def test_operators_by_hand():
    """GELU of 0 and of large numbers; a norm of (1, 3); a row of a table that another member holds."""
    gelu = placed_slices.RULES["activation"](None, [[np.array([0.0, 1.0, 30.0, -30.0])]])[0]
    assert gelu.tolist() == pytest.approx([0.0, 0.841192, 30.0, 0.0], abs=1e-6)
    pieces = placed_slices.RULES["norm"](None, [[np.array([[1.0]])], [np.array([[3.0]])]])
    assert [p.item() for p in pieces] == pytest.approx([-1.0, 1.0], rel=1e-4)
    assert placed_slices.RULES["add"](None, [[np.ones(1), np.ones(1)]])[0].item() == 2.0
    tables = [np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])]
    rows = placed_slices.RULES["embedding"](None, [[t, np.array([0, 2, 3])] for t in tables])
    assert [r.ravel().tolist() for r in rows] == [[1.0, 0.0, 0.0], [0.0, 3.0, 4.0]]


def test_a_loss_over_members():
    """Logits 0, 1 on one member and 2 on the other; labels 1 and 2."""
    left, right, labels = np.array([[0.0, 1.0]] * 2), np.array([[2.0]] * 2), np.array([1, 2])
    losses = placed_slices.RULES["cross_entropy"](None, [[left, labels], [right, labels]])
    total = np.log(1 + np.exp(1) + np.exp(2))
    assert all(x.tolist() == pytest.approx([total - 1.0, total - 2.0]) for x in losses)


def test_causal_attention_of_a_head():
    """Two tokens of one head of one: the first sees itself, the second both, by its scores 0 and 6."""
    op = replace(ATTENTION, heads=Heads(sequence_tokens=2, head_size=1))
    qkv = np.array([[1.0, 0.0, 5.0], [2.0, 3.0, 9.0]])
    found = placed_slices.RULES["attention"](op, [[qkv]])[0].ravel()
    weight = np.exp(6.0) / (1 + np.exp(6.0))
    assert found.tolist() == pytest.approx([5.0, 5.0 * (1 - weight) + 9.0 * weight])
    wide = replace(ATTENTION, heads=Heads(sequence_tokens=2, head_size=4))
    qkv = np.zeros((2, 12))
    qkv[1, :4], qkv[1, 4:8], qkv[:, 8:] = 1.0, 1.0, [[5.0], [9.0]]
    found = placed_slices.RULES["attention"](wide, [[qkv]])[0]
    weight = np.exp(2.0) / (1 + np.exp(2.0))  # four over the root of four
    assert found[1].tolist() == pytest.approx([5.0 * (1 - weight) + 9.0 * weight] * 4)


# --- two rules


MATRICES = (
    Matrix(name="q", in_features=8, out_features=12, is_attention=True),
    Matrix(name="out", in_features=12, out_features=8, is_attention=True),
    Matrix(name="up", in_features=8, out_features=30),
)


@pytest.fixture
def ruled(monkeypatch):
    """Three layers of these matrices; the last one is not cut."""
    monkeypatch.setattr(redco, "matrices", lambda block: MATRICES)
    monkeypatch.setattr(redco, "cuts", lambda found, shards: {"q": "column", "out": "row", "up": "replicated"})
    mixer = SoftmaxAttention.__new__(SoftmaxAttention)
    object.__setattr__(mixer, "num_heads", 6)
    block = SimpleNamespace(count=3, mixer=mixer, activation_elements=20)
    return SimpleNamespace(
        blocks=(block,),
        encoder=(),
        hidden_size=8,
        embedding_parameters=80,
        head=SimpleNamespace(in_features=8, out_features=10),
        is_head_tied=False,
        num_parameters=3 * (96 + 96 + 240 + 5) + 160,
    )


def test_memory_under_two_rules(ruled):
    """A layer's 96 + 96 parameters are cut in two, 240 are not; embedding and head of 80 are; 15 others are whole. In
    each of three layers a token leaves 6 x 8, 12 / 2 and 30 outputs, 20 / 2 between, and 2 x 6 x 4 / 2 scores."""
    found = training_memory(ruled, 2, sequence_tokens=4, num_sequences=5)
    held = 3 * (96 / 2 + 96 / 2 + 240) + 80 / 2 + 80 / 2
    assert found.state_bytes == pytest.approx(4 * 4 * (held + 15))
    assert found.activations_bytes == pytest.approx(4 * 20 * 3 * (48 + 6 + 30 + 10 + 24))
    assert found.total_bytes == found.state_bytes + found.activations_bytes
    tied = training_memory(SimpleNamespace(**(vars(ruled) | {"is_head_tied": True})), 2, sequence_tokens=4)
    assert tied.state_bytes == pytest.approx(4 * 4 * (held - 40 + 15 + 80))
    assert _held(MATRICES, {"q": "row", "out": "replicated", "up": "column"}, 2) == 48 + 96 + 120
    ruled.blocks[0].mixer = None
    assert _activations(ruled, ruled.blocks[0], {"q": "row", "out": "row", "up": "row"}, 2, 4) == 3 * (48 + 10)


def test_sizes_of_a_transformer():
    sizes = Sizes(num_sequences=2, sequence_tokens=8, hidden_size=16, num_heads=4, ffn_size=64)
    made = transformer_layer(sizes)
    assert made.num_parameters == sum(t.num_elements for t in made.tensors.values() if t.role == "weight")
    assert made.num_parameters >= 4 * 16 * 16 + 2 * 16 * 64
    assert made.pieces["t"] == 2
    assert made.pieces["a"] == 4
