"""Training on a whole graph: limits of drawn graphs, ways that are possible, and what stands for a larger one."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario import train_graph as page
from orrery.scenario.schema import read_scenario

EDGES = "0,1\n1,2\n2,7\n7,0\n"


@pytest.fixture
def edges(tmp_path):
    """A ring of four vertices, one of them called 7."""
    path = tmp_path / "ring.csv"
    path.write_text(EDGES)
    return str(path)


def drawn(monkeypatch, text):
    """The size and degree that are drawn, and the vertices that they stand for."""
    monkeypatch.setattr(page, "_planted", lambda count, mean, seed: (count, mean, seed))
    return page.graph_of(read_scenario({"graph": text, "seed": 3}))


@pytest.mark.parametrize(
    ("text", "graph", "size"),
    [
        ("planted:2:1", (2, 1.0, 3), 0),
        ("planted:20000:50", (20000, 50.0, 3), 0),
        ("planted:20001:50", (20000, 50.0, 3), 20001),
        ("planted:1000:2000", (500, 2000.0, 3), 1000),  # a million edges
        ("planted:1000000000:10000", (100, 10000.0, 3), 1000000000),
        ("Planted:5:0.5", (5, 0.5, 3), 0),
    ],
)
def test_graphs_that_are_drawn(monkeypatch, text, graph, size):
    assert drawn(monkeypatch, text) == (graph, size)


@pytest.mark.parametrize(
    "text", ["planted:1:2", "planted:1000000001:2", "planted:9:0", "planted:9:10000.1", "planted:9", "planted:a:1"]
)
def test_graphs_that_are_not(monkeypatch, text):
    with pytest.raises(ScenarioError, match=r"graph: got"):
        drawn(monkeypatch, text)


def test_communities_have_a_thousand_vertices_and_are_two_at_least(monkeypatch):
    monkeypatch.setattr(page, "planted_graph", lambda count, mean, **more: (count, mean, more))
    for count, communities in ((5, 2), (2999, 2), (3000, 3), (20000, 20)):
        found = page._planted.__wrapped__(count, 4.0, 1)
        assert found == (count, 4.0, {"num_communities": communities, "inside_frac": 0.5, "seed": 1})


def test_edges_of_a_file(edges, tmp_path):
    graph, size = page.graph_of(read_scenario({"graph": edges}))
    assert (graph.num_vertices, graph.num_edges, size) == (4, 8, 0)  # each both ways
    for text, columns in (("0,1,2\n", 3), ("0,0.5\n", 2)):
        path = tmp_path / "bad.csv"
        path.write_text(text)
        with pytest.raises(ScenarioError, match=f"has {columns} columns"):
            page.graph_of(read_scenario({"graph": str(path)}))


def answered(monkeypatch, settings, times):
    """Ways with their stages and chunks; each takes the seconds of ``times``, by its stages."""
    asked = []

    def epoch(parts, model, devices, num_stages, num_chunks):
        asked.append((parts, num_stages, num_chunks, model))
        return SimpleNamespace(time_s=times[num_stages], compute_s=1.0, exchange_s=2.0, send_s=3.0, idle_s=-4.0)

    class Parts(tuple):
        copies_ratio = 1.5

    monkeypatch.setattr(page, "epoch", epoch)
    monkeypatch.setattr(page, "_cut", lambda graph, num_parts, seed: num_parts)
    monkeypatch.setattr(page, "parts_of", lambda graph, cut: Parts((cut,)))
    monkeypatch.setattr(page, "enlarged", lambda parts, vertices, edges: Parts((*parts, vertices, edges)))
    monkeypatch.setattr(page, "volume", lambda parts, model, stages: SimpleNamespace(total_bytes=10.0 * stages))
    return page._answered(read_scenario({"device": "h100-sxm", "devices": 4} | settings)), asked


def test_the_fastest_of_the_ways_that_are_possible(monkeypatch, edges):
    """Four parts; four stages of one part; two stages of two parts. Chunks are of pipelines alone."""
    found, asked = answered(monkeypatch, {"graph": edges, "graph_parts": 2}, {1: 5.0, 4: 3.0, 2: 4.0})
    assert [(parts[0], stages, chunks) for parts, stages, chunks, _ in asked] == [(4, 1, 1), (1, 4, 8), (2, 2, 8)]
    assert (found.graph_parallel, found.epoch_s, found.volume.total_bytes) == ("pipeline", 3.0, 40.0)
    assert (found.num_vertices, found.num_edges) == (4, 8)
    assert found.parts == {"compute": 1.0, "exchange between parts": 2.0, "idle": 0.0}
    assert found.table("graph")[0]["idle_s"] == 0.0
    assert "graph_parallel: pipeline (the fastest)" in found.notes
    assert "graph_layers: 32 (default)" in found.notes
    told, _ = answered(monkeypatch, {"graph": edges, "graph_parallel": "vertices"}, {1: 5.0, 4: 3.0})
    assert told.graph_parallel == "vertices"
    assert not any("fastest" in note for note in told.notes)


@pytest.mark.parametrize(
    ("settings", "ways"),
    [
        ({}, ["vertices", "pipeline"]),
        ({"graph_layers": 6}, ["vertices"]),  # four stages do not divide six layers
        ({"graph_parts": 3}, ["vertices", "pipeline"]),  # nor three parts four devices
        ({"devices": 8}, ["pipeline"]),  # four vertices are not cut into eight parts
    ],
)
def test_ways_that_do_not_come_out_are_left_out(monkeypatch, edges, settings, ways):
    found, _ = answered(monkeypatch, {"graph": edges} | settings, dict.fromkeys(range(9), 1.0))
    assert [row["graph_parallel"] for row in found.table("graph")] == ways


def test_a_way_that_was_asked_for_and_does_not_come_out_is_refused(monkeypatch, edges):
    with pytest.raises(ScenarioError, match="pipeline has 4 stages of 1 parts for 4 devices and 6 layers"):
        answered(monkeypatch, {"graph": edges, "graph_layers": 6, "graph_parallel": "pipeline"}, {1: 1.0})
    with pytest.raises(ScenarioError, match="graph_parts: is missing"):
        answered(monkeypatch, {"graph": edges, "graph_parallel": "hybrid"}, {1: 1.0, 4: 1.0})
    for name in ("graph", "devices"):
        settings = {k: v for k, v in {"graph": edges, "devices": 4}.items() if k != name}
        with pytest.raises(ScenarioError, match=f"{name}: is missing"):
            page._answered(read_scenario(settings))


def test_parts_of_a_smaller_graph_stand_for_those_of_a_larger_one(monkeypatch, edges):
    """Four vertices with eight edges stand for a hundred: two hundred edges."""
    ring = page.graph_of(read_scenario({"graph": edges}))[0]
    monkeypatch.setattr(page, "graph_of", lambda scenario: (ring, 100))
    found, asked = answered(monkeypatch, {"graph": "planted:100:2"}, {1: 5.0, 4: 3.0})
    assert [parts for parts, *_ in asked] == [(4, 100, 200), (1, 100, 200)]
    assert (found.num_vertices, found.num_edges) == (100, 200)
    assert any("parts enlarged to 100" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "products", "passes", "first"),
    [("gcn", 1, 2, False), ("graphsage", 2, 2, False), ("gcnii", 1, 3, True), ("resgcn", 1, 4, False)],
)
def test_what_the_layers_of_a_model_do(monkeypatch, edges, name, products, passes, first):
    _, asked = answered(monkeypatch, {"graph": edges, "graph_model": name, "graph_hidden": 64}, {1: 1.0, 4: 1.0})
    model = asked[0][3]
    assert (model.num_products, model.num_elementwise, model.passes_first) == (products, passes, first)
    assert (model.num_layers, model.hidden_size) == (32, 64)
