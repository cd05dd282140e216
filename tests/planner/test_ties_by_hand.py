"""Ties and first steps of searches, and what a launch says of degrees of one: by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.train.layout import TrainingLayout
from orrery.planner.architecture.evolution import _ranked
from orrery.planner.launch.training import deepspeed
from orrery.planner.rlhf import generation, search


def test_equals_do_not_beat_each_other():
    """Two alike at (1, 1) and one at (2, 0) are beaten by none: the better in the goal comes first."""
    costs = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert _ranked(costs).tolist() == [1, 2, 0]
    worse = np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 3.0, 1.0]])  # as fast and larger; outside a limit
    assert _ranked(worse).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("degrees", "keys"),
    [
        ({}, set()),
        ({"tp": 2}, {"tensor_parallel"}),
        ({"ep": 2}, {"expert_parallel"}),
        ({"cp": 2}, {"sequence_parallel_size", "data_parallel_size"}),
        ({"pp": 2}, {"pipeline"}),
    ],
)
def test_deepspeed_is_told_of_degrees_above_one(monkeypatch, degrees, keys):
    monkeypatch.setattr(deepspeed, "experts_of", lambda job: "experts")
    found = deepspeed._parallel(SimpleNamespace(), TrainingLayout(**degrees))
    assert found.keys() == keys
    for name, size in (("tensor_parallel", "autotp_size"), ("expert_parallel", "autoep_size"), ("pipeline", "stages")):
        if name in keys:
            assert found[name][size] == 2


def test_a_dense_model_has_no_experts_to_place(monkeypatch):
    monkeypatch.setattr(deepspeed, "experts_of", lambda job: None)
    assert deepspeed._parallel(SimpleNamespace(), TrainingLayout(ep=2)) == {}


def test_a_pipeline_keeps_what_each_of_its_layers_recomputes():
    plain, full = (
        deepspeed._parallel(SimpleNamespace(), TrainingLayout(pp=2, recompute=kind)) for kind in ("none", "full")
    )
    assert plain["pipeline"]["activation_checkpoint_interval"] == 0
    assert full["pipeline"]["activation_checkpoint_interval"] == 1


def test_a_written_token_sees_its_prompt_itself_and_those_before_it(monkeypatch):
    """Four places write 40 tokens in all at every moment: each sees 100 of the prompt, itself and 10; the cache is
    fullest with 3 places that hold 60."""
    places = SimpleNamespace(
        num_steps=8,
        active=lambda at: (np.full(at.size, 4.0), np.full(at.size, 40.0)),
        fullest=(3.0, 60.0),
    )
    asked = []
    monkeypatch.setattr(generation, "slowest", lambda *given: asked.append(given[1:]) or places)
    job = SimpleNamespace(prompt_tokens=100, responses=(5,) * 21)
    found = generation._unequal(job, batch=4, waves=2)
    assert asked == [(3, 4)]  # 21 responses over 3 replicas of 4 x 2 places
    assert set(found.context_tokens.tolist()) == {111.0}
    assert (found.num_steps, found.cached_sequences, found.cached_tokens) == (8, 3.0, 121.0)
    assert found.share_frac.sum() == pytest.approx(1.0)


def test_of_plans_that_take_as_long_the_first_stays(monkeypatch):
    monkeypatch.setattr(search, "_cost", lambda evaluator, placed: (1.0, True))
    ways = ({1: [SimpleNamespace(time_s=1.0), SimpleNamespace(time_s=1.0)]},)
    job = SimpleNamespace(cluster=SimpleNamespace(num_devices=2))
    start = ["start"]
    found = search._chain(
        SimpleNamespace(ways=ways, job=job), SimpleNamespace(plan=lambda best: best), list(start), 50, 0, 0
    )
    assert found == start
