"""Searches and services in parts: the same answer to the last byte, in processes and on machines that may be lost."""

import importlib.util
import json
import os
import pickle
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_ray import fake_ray

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.planner import workers
from orrery.planner.training import search as training_search
from orrery.planner.workers import HERE, Workers, each

HAS_RAY = importlib.util.find_spec("ray") is not None
SPACE = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm,l40s",
    "max_devices": 8,
    "rate": 5.0,
    "input_tokens": 500,
    "output_tokens": 60,
}
TRAINING = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "devices": 16,
    "global_batch": 32,
    "seq_len": 2048,
    "schedule": "1f1b",
}
LARGE = TRAINING | {"model": "deepseek-v3", "devices": 512, "global_batch": 4096, "seq_len": 4096}
FLEET = """
device = "h100-sxm"
days = 0.002
input_tokens = 200
output_tokens = 20
[[service]]
name = "east"
model = "llama-3.1-8b"
rate = 5
[[service]]
name = "west"
model = "llama-3.1-8b"
rate = 8
"""


def written(answer):
    """An answer as bytes, without how long it took."""

    def timeless(value):
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "evaluations_per_s")}
        return [timeless(v) for v in value] if isinstance(value, list) else value

    return json.dumps(timeless(answer.to_json())).encode()


def times(factor, item):
    """A task of the tests."""
    if item < 0:
        raise ValueError(f"{item} is below 0")
    return factor * item


@pytest.fixture
def in_threes(monkeypatch):
    """Parts of three items."""
    monkeypatch.setattr(workers, "PART", 3)


@pytest.fixture
def pretended(monkeypatch):
    """A cluster that runs everything here."""
    calls = []
    monkeypatch.setitem(sys.modules, "ray", fake_ray(calls))
    return calls


def test_items_come_in_their_order_and_progress_is_told(in_threes, pretended):
    for who in (HERE, Workers(ray="auto")):
        told = []
        assert each(times, 10, range(8), who, told.append) == [10 * k for k in range(8)]
        assert told[-1] == 8
        assert told == sorted(told)
    assert pretended.count("asked") == 3
    assert each(times, 10, [], Workers(ray="auto"), lambda _: None) == []


def test_a_part_that_fails_is_named(in_threes, pretended):
    with pytest.raises(ScenarioError, match="ValueError: -1 is below 0"):
        each(times, 10, [1, -1], Workers(ray="auto"), lambda _: None)


@pytest.fixture
def elsewhere(monkeypatch):
    """Parts that end in another order, with items that are copies, as they come back from elsewhere."""
    asked = []

    def backwards(function, todo, *, jobs, ray):
        for key, arguments in reversed(todo.items()):
            asked.append(key)
            yield key, pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(arguments)))))

    monkeypatch.setattr(workers, "results", backwards)
    return asked


def test_a_plan_in_parts_is_the_same(monkeypatch, elsewhere):
    monkeypatch.setattr(workers, "PART", 16)
    space = SPACE | {"device": "h100-sxm", "max_devices": 2}
    assert written(orrery.plan(**space, jobs=2)) == written(orrery.plan(**space))


@pytest.mark.parametrize("against", [None, "tp4 mb1"])
def test_a_training_plan_in_parts_is_the_same(monkeypatch, elsewhere, against):
    """The fastest, the front, what fell out, and all counts; of a layout beside them its rank too."""
    monkeypatch.setattr(training_search, "HEAD", 3)
    monkeypatch.setattr(training_search, "PART", 2)
    given = TRAINING | ({"against": against} if against else {})
    alone = orrery.train_plan(**given)
    assert written(orrery.train_plan(**given, jobs=2)) == written(alone)
    assert len(elsewhere) > 3
    monkeypatch.setattr(training_search, "HEAD", 10**6)  # one after the other, each knowing all before
    whole = orrery.train_plan(**given)
    assert [p.layout for p in whole.plans] == [p.layout for p in alone.plans]
    assert whole.front == alone.front
    assert whole.evaluated + whole.ruled_out == alone.evaluated + alone.ruled_out
    assert whole.evaluated <= alone.evaluated
    assert (whole.against and whole.against.num_faster) == (alone.against and alone.against.num_faster)


def test_only_a_search_of_layouts_is_shared_out(capsys):
    for words in (["--devices", "8", "--jobs", "2"], ["--rl", "--plan", "--ray", "local"]):
        assert run(["train", "--model", "llama-3.1-8b", "--device", "h100-sxm", "--global-batch", "8", *words]) == 2
        assert "share out the search of --plan" in capsys.readouterr().err


def test_services_in_parts_are_the_same(tmp_path, pretended):
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    assert written(orrery.simulate_fleet(file, ray="auto")) == written(orrery.simulate_fleet(file))
    assert pretended.count("asked") == 2


def test_one_service_is_not_shared_out():
    with pytest.raises(ScenarioError, match="share out several services"):
        orrery.simulate_fleet(model="llama-3.1-8b", device="h100-sxm", rate=1, input_tokens=9, output_tokens=9, jobs=2)


@pytest.mark.slow
def test_processes_give_the_same_plan_and_services(monkeypatch, tmp_path):
    monkeypatch.setattr(workers, "PART", 64)
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    assert written(orrery.plan(**SPACE, jobs=2)) == written(orrery.plan(**SPACE))
    assert written(orrery.simulate_fleet(file, jobs=2)) == written(orrery.simulate_fleet(file))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not HAS_RAY, reason="needs the package ray")
@pytest.mark.parametrize("trains", [False, True])
def test_a_plan_is_the_same_while_a_machine_is_killed(monkeypatch, trains):
    """Three machines of one core each, as processes of this one; one is killed in the middle of the search."""
    space, ask = (LARGE, orrery.train_plan) if trains else (SPACE, orrery.plan)
    told = "progress" if trains else "on_progress"
    ray_cluster = pytest.importorskip("ray.cluster_utils")
    here = [str(Path(__file__).parents[2] / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))
    monkeypatch.setattr(workers, "PART", 8)
    expected = written(ask(**space))
    cluster = ray_cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        killed = threading.Event()

        def on_progress(done, total):
            if done > training_search.HEAD * trains and not killed.is_set():
                killed.set()
                cluster.remove_node(second, allow_graceful=False)

        assert written(ask(**space, ray=cluster.address, **{told: on_progress})) == expected
        assert killed.is_set()
    finally:
        cluster.shutdown()


@pytest.mark.bench
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_two_processes_search_a_large_space_nearly_twice_as_fast_as_one():
    space = SPACE | {"model": "llama-3.1-70b", "max_devices": 64, "device": "h100-sxm,h200,b200,a100-sxm-80gb"}
    took_s = []
    for jobs in (1, 2):
        begun_s = time.monotonic()
        orrery.plan(**space, jobs=jobs)
        took_s.append(time.monotonic() - begun_s)
    print(f"\n{took_s[0]:.1f} s in one process, {took_s[1]:.1f} s in two")
    assert took_s[0] > 1.2 * took_s[1]
