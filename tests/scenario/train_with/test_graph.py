"""``orrery train --graph``: the user's edges are cut here; volumes by hand."""

import json

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run

JOB = {"device": "a100-sxm-80gb", "devices": 4, "graph_layers": 8, "graph_hidden": 64}


def rows(answer):
    return {row["graph_parallel"]: row for row in answer.table("graph")}


def ring(path, count):
    path.write_text("source,target\n" + "\n".join(f"{i},{(i + 1) % count}" for i in range(count)) + "\n")
    return str(path)


def test_volumes_of_a_ring_by_hand(tmp_path):
    answer = orrery.train_graph(**JOB, graph=ring(tmp_path / "ring.csv", 400))
    assert (answer.num_vertices, answer.num_edges) == (400, 800)
    found = rows(answer)
    # breadth first, both ways from a vertex: one arc, two, two, and one. Six edges are cut, so twelve rows leave their
    # part, in each of eight layers, forward and backward
    assert found["vertices"]["sent_bytes"] == 2 * 8 * 12 * 64 * 4
    # three borders that all rows cross, forward and backward
    assert found["pipeline"]["sent_bytes"] == 2 * 3 * 400 * 64 * 4
    assert found["vertices"]["copies_ratio"] == pytest.approx(12 / 400)
    for row in found.values():
        assert row["compute_s"] + row["exchange_s"] + row["idle_s"] == pytest.approx(row["epoch_s"])


def test_deep_models_on_dense_graphs_gain_by_the_pipeline_and_one_device_nothing():
    found = rows(orrery.train_graph(**{**JOB, "graph_layers": 64}, graph="planted:3000:40"))
    assert found["pipeline"]["sent_bytes"] < found["vertices"]["sent_bytes"]
    alone = rows(orrery.train_graph(**{**JOB, "devices": 1}, graph="planted:3000:40", graph_chunks=1))
    assert alone["pipeline"]["epoch_s"] == alone["vertices"]["epoch_s"]
    assert alone["vertices"]["sent_bytes"] == 0.0


def test_hybrids_lie_between_in_what_they_send():
    answer = orrery.train_graph(**JOB, graph="planted:2000:20", graph_parts=2, graph_parallel="hybrid")
    found = rows(answer)
    assert answer.epoch_s == found["hybrid"]["epoch_s"] == pytest.approx(sum(answer.parts.values()))
    assert found["hybrid"]["copies_ratio"] < found["vertices"]["copies_ratio"]


def test_the_command_says_the_same(capsys):
    words = ["--device", "a100-sxm-80gb", "--devices", "4", "--graph-layers", "8", "--graph-hidden", "64"]
    assert run(["train", *words, "--graph", "planted:1000:10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epoch_s"] == orrery.train_graph(**JOB, graph="planted:1000:10").epoch_s


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"graph": "planted:5"}, "write an edge a line"),
        ({"graph": "planted:1000:10", "graph_parallel": "hybrid"}, "graph_parts: is missing"),
        ({"graph": "planted:1000:10", "graph_parallel": "pipeline", "graph_layers": 6}, "has 4 stages of 1 parts"),
        ({"graph": "nofile.csv"}, "which is no file"),
        ({}, "graph: is missing"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    with pytest.raises(ScenarioError, match=message):
        orrery.train_graph(**{**JOB, **given})
