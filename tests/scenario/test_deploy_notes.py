"""Files that start a plan: what is noted and what is refused."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario import deploy


def started(monkeypatch, devices, node_devices, names="kubernetes", engine="vllm"):
    one = SimpleNamespace(devices=devices, node_devices=node_devices)
    monkeypatch.setattr(deploy, "written", lambda plan, engine, startup_s: one)
    monkeypatch.setattr(deploy, "deploy_file", lambda name, one: (f"{name}.yaml", name))
    start = SimpleNamespace(start=SimpleNamespace(seconds_s=42.0))
    monkeypatch.setattr(deploy, "cold_start_of", lambda scenario, deployment: start)
    deployment = SimpleNamespace(engine=SimpleNamespace(name=engine))
    plan = SimpleNamespace(operation=SimpleNamespace(deployment=deployment))
    return deploy.deploy_files(SimpleNamespace(plans=(plan, None)), names)


@pytest.mark.parametrize(
    ("devices", "names", "spans"), [(8, "kubernetes", False), (9, "kubernetes", True), (9, "slurm", False)]
)
def test_a_replica_over_several_nodes_is_noted(monkeypatch, devices, names, spans):
    files, notes = started(monkeypatch, devices, 8, names)
    assert list(files) == [f"{names}.yaml"]
    assert any("spans several nodes" in note for note in notes) == spans
    assert any("takes 42 s" in note for note in notes)
    assert any("vLLM's metrics" in note for note in notes) == (names == "kubernetes")


def test_what_cannot_be_started(monkeypatch):
    with pytest.raises(ScenarioError, match="got 'nomad'"):
        started(monkeypatch, 1, 8, "kubernetes,nomad")
    with pytest.raises(ScenarioError, match="no plan works"):
        deploy.deploy_files(SimpleNamespace(plans=()), "kubernetes")
    with pytest.raises(ScenarioError, match="not tensorrt-llm"):
        started(monkeypatch, 1, 8, engine="tensorrt-llm")
