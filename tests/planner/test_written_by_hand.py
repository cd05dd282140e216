"""Numbers that a plan's files state, a curve of one candidate and layouts near another, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from orrery.execution.train.layout import TrainingLayout
from orrery.planner import curve as curves
from orrery.planner.deploy.files import Written, _keda, _kubernetes
from orrery.planner.rlhf.dataflow import RlhfJob
from orrery.planner.training.nearby import _easier
from orrery.planner.training.search import ConstraintRejection

REPLICA = {"name": "m", "engine": "vllm", "model": "o/m", "args": ("--max-num-seqs", "8"), "replicas": 3, "devices": 2}
REPLICA |= {"node_devices": 8, "target": 7, "tp": 2, "pp": 1, "dp": 1}


@pytest.mark.parametrize(
    ("startup_s", "cooldown_s", "failures"), [(60.0, 300, 12), (150.0, 300, 30), (200.0, 400, 40), (200.4, 401, 41)]
)
def test_a_replica_that_starts_slowly_is_stopped_later(startup_s, cooldown_s, failures):
    """Not before twice the time that it takes to start, nor before five minutes; it is looked at every ten seconds."""
    deployment, service, scaler = yaml.safe_load_all(_keda(Written(**REPLICA, startup_s=startup_s)))
    assert scaler["spec"]["cooldownPeriod"] == cooldown_s
    probe = deployment["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
    assert (probe["periodSeconds"], probe["failureThreshold"]) == (10, failures)
    assert service["spec"]["ports"] == [{"port": 80, "targetPort": 8000}]
    assert scaler["spec"]["triggers"][0]["metadata"]["threshold"] == "7"


def test_replicas_of_a_plan_are_the_most():
    *_, scaler = yaml.safe_load_all(_kubernetes(Written(**REPLICA, startup_s=60.0)))
    spec = scaler["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    assert spec["metrics"][0]["pods"]["target"]["averageValue"] == "7"
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300


@pytest.mark.parametrize(
    ("output_tokens", "tpot_s", "e2el_s"),
    [
        (1, [0.0, 0.0], [1.0, 2.0]),  # the first token is all
        (2, [0.05, 0.1], [1.05, 2.1]),
        (11, [0.05, 0.1], [1.5, 3.0]),
    ],
)
def test_a_candidate_along_the_ladder(monkeypatch, output_tokens, tpot_s, e2el_s):
    """Steps of 0.1 and 0.2 s that make two tokens each."""
    points = SimpleNamespace(
        ttft_s=np.array([1.0, 2.0]), tpot_s=np.array([0.1, 0.2]), requests_per_s=np.array([3.0, 4.0])
    )
    found = SimpleNamespace(deployment=None, memory=None, output_steps=output_tokens / 2, tokens_per_step=2.0)
    monkeypatch.setattr(curves, "drafted", lambda *_: found)
    monkeypatch.setattr(curves, "open_loop", lambda *_: points)
    goal = SimpleNamespace(traffic=SimpleNamespace(input_tokens=10, output_tokens=output_tokens))
    curve = curves.swept(goal, SimpleNamespace(deployment=None), None, np.array([1.0, 4.0]))
    assert curve.tpot_s == pytest.approx(tpot_s)
    assert curve.e2el_s == pytest.approx(e2el_s)
    assert curve.metric("requests_per_s").tolist() == [3.0, 4.0]
    assert curve.at(2.0, curve.ttft_s) == pytest.approx(2.0**0.5)  # halfway from 1 to 4, and from 1 to 2


def test_layouts_with_less_in_memory():
    """The four largest micro-batches up to the layout's own, each way to share, and no less recomputation."""
    found = list(_easier(TrainingLayout(micro_batch=16, recompute="selective"), [1, 2, 4, 8, 16, 32]))
    assert {x.micro_batch for x in found} == {2, 4, 8, 16}
    assert {x.recompute for x in found} == {"selective", "full"}
    assert len(found) == 2 * 3 * 4
    assert {x.micro_batch for x in _easier(TrainingLayout(micro_batch=2), [4, 8])} == {2}


def test_models_that_a_call_updates():
    calls = (SimpleNamespace(role="actor", kind="train"), SimpleNamespace(role="reward", kind="infer"))
    trained = [RlhfJob.trains(SimpleNamespace(calls=calls), role) for role in ("actor", "reward", "critic")]
    assert trained == [True, False, False]


def test_a_rule_that_rejects_needs_and_has_no_bytes():
    rejection = ConstraintRejection(family=None, constraint="heads", layouts=3)
    assert (rejection.need_bytes, rejection.have_bytes, rejection.nearest) == (0.0, 0.0, None)
