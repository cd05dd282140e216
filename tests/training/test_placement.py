"""Placements: what conversions move, which signatures letters allow, what the search finds, what slices compute."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placed_ends import embedding, output_head
from placed_slices import convert, gather, place, run

from orrery.catalog.devices import get_device
from orrery.execution.memory import Infeasible
from orrery.network import predict
from orrery.training.placement.conversion import COLLECTIVES, cheapest, conversion_s, orders, steps_s
from orrery.training.placement.eliminate import Table, minimise
from orrery.training.placement.graph import Graph, Sizes, transformer_layer
from orrery.training.placement.mesh import Mesh
from orrery.training.placement.search import Plan, Problem, account, cheapest_plan
from orrery.training.placement.signature import mesh_signatures, signatures
from orrery.training.placement.state import BROADCAST, PARTIAL, dual, local_shape, split

A100 = get_device("a100-sxm-80gb")
LINE, GRID = Mesh(device=A100, shape=(8,)), Mesh(device=A100, shape=(2, 4))

STATES = [BROADCAST, PARTIAL, split(0), split(1)]
PLACEMENTS = list(product(STATES, repeat=2))

MANY_TOKENS = Sizes(num_sequences=64, sequence_tokens=1024, hidden_size=1024, num_heads=16, ffn_size=4096)
LARGE_WEIGHTS = Sizes(num_sequences=16, sequence_tokens=2048, hidden_size=12288, num_heads=96, ffn_size=49152)
FEW_TOKENS = Sizes(num_sequences=1, sequence_tokens=2048, hidden_size=12288, num_heads=96, ffn_size=49152)
TINY = Sizes(num_sequences=8, sequence_tokens=3, hidden_size=16, num_heads=8, ffn_size=32, vocab_size=24)


def planned(graph: Graph, mesh: Mesh, **limits: object) -> Plan:
    """The cheapest plan, which must exist."""
    found = cheapest_plan(graph, mesh, **limits)  # type: ignore[arg-type]
    assert isinstance(found, Plan)
    return found


def weights(plan: Plan) -> dict[str, str]:
    """Placements of the weights, as text."""
    return {name: " ".join(map(str, p)) for name, p in plan.weights.items()}


@pytest.mark.parametrize(
    ("before", "after", "per_tensor"),
    [
        (split(0), BROADCAST, 7.0),
        (PARTIAL, split(0), 7.0),
        (PARTIAL, BROADCAST, 14.0),
        (split(0), split(1), 7.0 / 8.0),
        (BROADCAST, split(0), 0.0),
        (BROADCAST, PARTIAL, 0.0),
        (split(0), PARTIAL, 0.0),
        (split(1), split(1), 0.0),
    ],
)
def test_all_devices_together_send_what_the_table_of_conversions_says(before, after, per_tensor):
    size = 1e9
    sent = 0.0
    for step in cheapest((before,), (after,), size, LINE):
        if step.collective:
            work = LINE.collective(step.collective, step.mesh_axis, step.message_bytes(size, LINE.shape))
            sent += 8 * float(predict(work, A100).sent_bytes)
    assert sent / size == pytest.approx(per_tensor)
    assert (conversion_s((before,), (after,), size, LINE) > 0.0) == (per_tensor > 0.0)


@pytest.mark.parametrize("before", PLACEMENTS)
@pytest.mark.parametrize("mesh_shape", [(2, 4), (4, 2)])
def test_every_conversion_in_every_order_keeps_the_tensor(before, mesh_shape):
    whole = np.arange(16.0 * 24.0).reshape(16, 24)
    held = place(whole, before, mesh_shape)
    assert held[0, 0].shape == local_shape(whole.shape, before, mesh_shape)
    for after in PLACEMENTS:
        assert len(list(orders(before, after))) in (1, 2)
        moved = convert(held, before, after, mesh_shape)
        assert all(x.shape == local_shape(whole.shape, after, mesh_shape) for x in moved.values())
        np.testing.assert_array_equal(gather(moved, after, mesh_shape), whole)
        straight = place(whole, after, mesh_shape)
        if PARTIAL not in after:
            assert all((moved[at] == straight[at]).all() for at in moved)


def test_an_outer_cut_of_an_axis_that_is_cut_inside_gathers_it_first():
    steps = next(iter(orders((BROADCAST, split(0)), (split(0), split(0)))))
    assert [(x.mesh_axis, x.collective) for x in steps] == [(1, "all_gather"), (0, ""), (1, "")]


def test_gradients_of_copies_add_up_and_gradients_of_terms_are_copies():
    assert dual((BROADCAST, PARTIAL)) == (PARTIAL, BROADCAST)
    assert dual((split(1), split(0))) == (split(1), split(0))
    assert all(dual(dual(p)) == p for p in PLACEMENTS)


def test_signatures_of_a_product_are_those_of_the_paper():
    graph = transformer_layer(TINY)
    product_ = next(op for op in graph.ops if op.name == "up")
    found = {str(s) for s in signatures(product_, graph)}
    assert found == {"B, B -> B", "S(0), B -> S(0)", "B, S(1) -> S(1)", "S(1), S(0) -> P", "P, B -> P"}


@pytest.mark.parametrize(
    ("graph", "name", "expected"),
    [
        (transformer_layer(TINY), "attention", {"B -> B", "S(0) -> S(0)", "S(1) -> S(1)"}),
        (transformer_layer(TINY), "activation", {"B -> B", "S(0) -> S(0)", "S(1) -> S(1)"}),
        (transformer_layer(TINY), "add", {"B, B -> B", "S(0), S(0) -> S(0)", "S(1), S(1) -> S(1)", "P, P -> P"}),
        (embedding(TINY), "embedding", {"B, B -> B", "B, S(0) -> S(0)", "S(0), B -> P", "S(1), B -> S(1)"}),
        (output_head(TINY), "loss", {"B, B -> B", "S(0), S(0) -> S(0)", "S(1), B -> B"}),
    ],
)
def test_signatures_of_the_other_operators(graph, name, expected):
    assert {str(s) for s in signatures(next(op for op in graph.ops if op.name == name), graph)} == expected


def test_a_letter_is_not_cut_into_more_pieces_than_it_has():
    graph = transformer_layer(TINY)
    attention = next(op for op in graph.ops if op.name == "attention")
    assert len(mesh_signatures(attention, graph, (4, 4))) == 7  # neither letter twice: 16 pieces of 8
    assert len(mesh_signatures(attention, graph, (2, 4))) == 9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_elimination_finds_what_trying_everything_finds(seed, count):
    draw = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(count)]
    sizes = {name: int(draw.integers(1, 4)) for name in names}
    tables = []
    for _ in range(int(draw.integers(1, 8))):
        over = tuple(draw.permutation(names)[: draw.integers(1, 4)])
        tables.append(Table(variables=over, costs_s=draw.random([sizes[v] for v in over])))
    least, values = minimise(sizes, tables)

    def total(chosen):
        return sum(float(t.costs_s[tuple(chosen[v] for v in t.variables)]) for t in tables)

    everything = [dict(zip(names, x, strict=True)) for x in product(*(range(sizes[n]) for n in names))]
    assert least == pytest.approx(min(map(total, everything)))
    assert total(values) == pytest.approx(least)


@pytest.mark.parametrize("graph", [output_head(TINY), embedding(TINY)], ids=["head", "embedding"])
@pytest.mark.parametrize("gathers", [False, True])
def test_the_plan_is_the_cheapest_of_all(graph, gathers):
    problem = Problem(graph=graph, mesh=LINE, gathers_weights=gathers)
    best = planned(graph, LINE, gathers_weights=gathers)
    names = [op.name for op in graph.ops]
    sources = problem.sources()
    times = []
    for chosen in product(*(problem.signatures(op) for op in graph.ops)):
        for placed in product(*(problem.placements(t) for t in sources)):
            at = {t.name: p for t, p in zip(sources, placed, strict=True)}
            times.append(account(problem, dict(zip(names, chosen, strict=True)), at).time_s)
    assert best.time_s == pytest.approx(min(times))


def test_many_tokens_and_small_weights_are_data_parallel():
    plan = planned(transformer_layer(MANY_TOKENS), LINE)
    assert set(weights(plan).values()) == {"B"}
    assert {s.letter for chosen in plan.signatures.values() for s in chosen} == {"t"}
    assert plan.conversion_s == 0.0
    expected = sum(
        LINE.exchange_s("all_reduce", 0, 2.0 * n * 1024**2) for n in (3, 1, 4, 4)
    )  # one sum for each weight's gradient
    assert plan.weights_s == pytest.approx(expected)


COLUMN_THEN_ROW = {"w_qkv": "S(1)", "w_out": "S(0)", "w_up": "S(1)", "w_down": "S(0)"}


def eighth_bytes(graph: Graph) -> float:
    """Room for an eighth of the weights with their states, and a fifth to spare: not for copies."""
    return 16.0 * graph.num_parameters / 8 * 1.2


def test_large_weights_are_cut_by_columns_then_by_rows():
    graph = transformer_layer(LARGE_WEIGHTS)
    plan = planned(graph, LINE, memory_limit_bytes=eighth_bytes(graph))
    assert weights(plan) == COLUMN_THEN_ROW
    assert plan.signatures["attention"][0].letter == "a"
    assert plan.weights_s == 0.0
    assert plan.weight_bytes <= eighth_bytes(graph)


def test_of_few_tokens_either_cut_of_the_output_product_moves_as_much():
    """One sequence leaves the residual cut by h. Rows of w_out scatter terms of it, columns gather the heads: forward
    and backward change places. What a product of either shape takes decides, and it decides little.
    """
    graph = transformer_layer(FEW_TOKENS)
    plan = planned(graph, LINE, memory_limit_bytes=eighth_bytes(graph))
    assert {name: cut for name, cut in weights(plan).items() if name != "w_out"} == {
        name: cut for name, cut in COLUMN_THEN_ROW.items() if name != "w_out"
    }
    assert plan.weights_s == 0.0
    problem = Problem(graph=graph, mesh=LINE)
    out = next(op for op in graph.ops if op.name == "out")
    cuts = {chosen[0].letter: chosen for chosen in problem.signatures(out)}
    by_rows, by_columns = (account(problem, plan.signatures | {"out": cuts[letter]}, plan.inputs) for letter in "ah")
    assert weights(by_rows) == COLUMN_THEN_ROW
    assert weights(by_columns) == COLUMN_THEN_ROW | {"w_out": "S(1)"}
    assert by_rows.conversion_s == pytest.approx(by_columns.conversion_s)
    assert plan.time_s == pytest.approx(min(by_rows.time_s, by_columns.time_s))
    assert by_rows.time_s == pytest.approx(by_columns.time_s, rel=0.01)


def test_column_then_row_moves_what_four_all_reduces_of_the_residual_move():
    plan = planned(transformer_layer(FEW_TOKENS), LINE)
    residual_bytes = 2.0 * FEW_TOKENS.num_tokens * FEW_TOKENS.hidden_size
    pairs = [LINE.exchange_s(kind, 0, residual_bytes) for kind in ("reduce_scatter", "all_gather")]
    assert plan.conversion_s == pytest.approx(4 * sum(pairs))  # an all-reduce in two halves: sequence parallelism
    assert sum(pairs) == pytest.approx(LINE.exchange_s("all_reduce", 0, residual_bytes), rel=0.25)


def test_between_the_products_the_residual_is_cut_so_that_norms_are_shared_out():
    plan = planned(transformer_layer(LARGE_WEIGHTS), LINE, memory_limit_bytes=4e9)
    assert {plan.signatures[name][0].letter for name in ("norm", "add", "norm_again", "add_again")} == {"t"}


def test_two_axes_mix_data_and_tensor_parallelism():
    plan = planned(transformer_layer(LARGE_WEIGHTS), GRID)
    assert weights(plan) == {"w_qkv": "B S(1)", "w_out": "B S(0)", "w_up": "B S(1)", "w_down": "B S(0)"}
    assert all(chosen[0].letter == "t" for chosen in plan.signatures.values())


def test_gathered_weights_take_less_memory_than_copies_at_the_batch_of_data_parallelism():
    graph = transformer_layer(MANY_TOKENS)
    copies = planned(graph, LINE)
    gathered = planned(graph, LINE, gathers_weights=True, memory_limit_bytes=copies.weight_bytes / 8)
    assert gathered.weight_bytes == pytest.approx(copies.weight_bytes / 8)
    assert {s.letter for chosen in gathered.signatures.values() for s in chosen} == {"t"}
    assert gathered.weights_s > copies.weights_s


def test_a_large_vocabulary_is_cut_and_its_loss_with_it():
    sizes = Sizes(
        num_sequences=8, sequence_tokens=512, hidden_size=4096, num_heads=32, ffn_size=16384, vocab_size=128_000
    )
    for placement in ((BROADCAST,), (split(0),)):
        plan = planned(output_head(sizes), LINE, given={"x": placement})
        assert weights(plan) == {"w_head": "S(1)"}
        assert plan.signatures["loss"][0].letter == "v"
        logits_s = LINE.exchange_s("all_gather", 0, 2.0 * 4096 * 128_000)
        assert 0.0 < plan.inner_s < logits_s / 10.0
    ends = planned(embedding(sizes), LINE, given={"ids": (BROADCAST,)})
    assert weights(ends)["w_words"] != "B"


def test_a_mesh_without_room_says_by_how_much():
    graph = transformer_layer(LARGE_WEIGHTS)
    found = cheapest_plan(graph, LINE, memory_limit_bytes=1e9)
    assert isinstance(found, Infeasible)
    assert found.need == pytest.approx(16.0 * graph.num_parameters / 8)
    assert found.have == 1e9


def test_less_memory_never_makes_a_plan_faster():
    graph = transformer_layer(LARGE_WEIGHTS)
    times = [planned(graph, GRID, memory_limit_bytes=x).time_s for x in (30e9, 8e9, 5e9, 3.7e9)]
    assert times == sorted(times)


def _arrays(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {
        t.name: draw.standard_normal(t.shape) if t.has_gradient else draw.integers(0, TINY.vocab_size, t.shape)
        for t in graph.tensors.values()
        if t.role != "value"
    }


@pytest.mark.parametrize("graph", [transformer_layer(TINY), output_head(TINY), embedding(TINY)])
@pytest.mark.parametrize("shape", [(1,), (8,), (2, 4), (4, 2)])
def test_any_choice_of_signatures_computes_what_one_device_computes(graph, shape):
    arrays = _arrays(graph, 1)
    alone = run(graph, planned(graph, Mesh(device=A100, shape=(1,))), arrays, (1,))
    problem = Problem(graph=graph, mesh=Mesh(device=A100, shape=shape))
    draw = np.random.default_rng(2)
    for _ in range(12):
        chosen = {op.name: _any(draw, problem.signatures(op)) for op in graph.ops}
        placed = {t.name: _any(draw, problem.placements(t)) for t in problem.sources()}
        shared = run(graph, account(problem, chosen, placed), arrays, shape)
        for name, expected in alone.items():
            np.testing.assert_allclose(shared[name], expected, rtol=1e-9, atol=1e-9)


def _any(draw: np.random.Generator, options: tuple) -> object:
    return options[int(draw.integers(len(options)))]


def test_the_whole_computation_is_the_plain_one():
    graph = output_head(TINY)
    arrays = _arrays(graph, 3)
    logits = arrays["x"] @ arrays["w_head"]
    likely = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -np.log(likely[np.arange(TINY.num_tokens), arrays["labels"]])
    plan = planned(graph, LINE)
    np.testing.assert_allclose(run(graph, plan, arrays, (8,))["losses"], expected)


def test_steps_of_nothing_take_no_time():
    assert steps_s((), 1e9, LINE) == 0.0
    assert set(COLLECTIVES.values()) == {"all_gather", "reduce_scatter", "all_to_all", "all_reduce"}


@pytest.mark.parametrize("shape", [(4,), (2, 4)])
def test_gradients_come_out_in_the_dual_placement(shape):
    graph = transformer_layer(TINY)
    op = next(x for x in graph.ops if x.name == "up")
    draw = np.random.default_rng(4)
    x, weight, dy = (draw.standard_normal(s) for s in ((24, 16), (16, 32), (24, 32)))
    for chosen in mesh_signatures(op, graph, shape):
        placed = [tuple(s.inputs[i] for s in chosen) for i in range(2)]
        made = tuple(s.output for s in chosen)
        xs, ws = (place(a, p, shape) for a, p in zip((x, weight), placed, strict=True))
        dys = place(dy, dual(made), shape)
        dxs = {at: dys[at] @ ws[at].T for at in dys}
        dws = {at: xs[at].T @ dys[at] for at in dys}
        np.testing.assert_allclose(gather(dxs, dual(placed[0]), shape), dy @ weight.T)
        np.testing.assert_allclose(gather(dws, dual(placed[1]), shape), x.T @ dy)
