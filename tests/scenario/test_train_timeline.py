"""The pipeline of one training step: where layers and ends stand, what is computed again, and what is drawn."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_timeline import check_timeline, piece_seconds, played_step
from orrery.training.schedules.registry import get_schedule


@pytest.fixture(scope="module")
def job():
    """Sixteen layers on sixteen devices, and a step of 512 sequences."""
    sizes = {"devices": 16, "pp": 4, "global_batch": 512, "seq_len": 2048}
    return orrery.train(model="llama-3.2-1b", device="a100-sxm-80gb", framework="megatron-lm", **sizes)


def pieces(job, **changes):
    layout = replace(job.layout, **changes)
    return piece_seconds(job.job, layout, get_schedule(layout.schedule))


def with_ends(array, embedding, head):
    """One time in every place but those of the two ends; more in that of the head, and no less in the other."""
    middle = np.ones(array.shape, dtype=np.bool_)
    middle[embedding] = middle[head] = False
    (layer_s,) = set(array[middle].tolist())
    assert array[head] > 1.2 * layer_s
    assert array[embedding] >= layer_s
    return layer_s


@pytest.mark.parametrize(
    ("schedule", "vp", "head"),
    [
        ("1f1b", 1, (3, 0)),
        ("interleaved", 2, (3, 1)),  # chunks go around: the last one is on the last rank
        ("zero-bubble-v", 2, (0, 1)),  # there and back: the last one is on the first rank
    ],
)
def test_ends_stand_with_the_first_and_the_last_layers(job, schedule, vp, head):
    found, plain = pieces(job, schedule=schedule, vp=vp), pieces(job)
    for name in ("forward_s", "backward_s", "weight_s"):
        array = getattr(found, name)
        chunks = array.shape[1]
        assert array.shape == (4, 1 if schedule == "1f1b" else 2)
        assert with_ends(array, (0, 0), head) * chunks == pytest.approx(with_ends(getattr(plain, name), (0, 0), (3, 0)))
        assert array.sum() == pytest.approx(getattr(plain, name).sum())


def test_mirrored_chunks_have_the_model_twice(job):
    """Two directions: chunk 0 of rank r and chunk 1 of rank 3 - r are the same layers."""
    found, plain = pieces(job, schedule="dualpipe"), pieces(job)
    assert np.array_equal(found.forward_s[:, 0], found.forward_s[::-1, 1])
    assert found.forward_s[:, 0] == pytest.approx(plain.forward_s[:, 0])


def test_stages_of_unequal_length(job):
    """One layer in the first stage and three in the last leave six for each of the others."""
    plain = pieces(job)
    layer_s = plain.forward_s[1, 0] / 4
    found = pieces(job, first_stage_layers=1, last_stage_layers=3)
    assert found.forward_s[1, 0] == found.forward_s[2, 0] == pytest.approx(6 * layer_s)
    assert plain.forward_s[0, 0] - found.forward_s[0, 0] == pytest.approx(3 * layer_s)
    assert plain.forward_s[3, 0] - found.forward_s[3, 0] == pytest.approx(1 * layer_s)


def test_what_is_computed_again_is_part_of_going_back(job):
    """All of a stage's four layers, or two of them; never more than there are."""
    plain, full = pieces(job), pieces(job, recompute="full")
    again_s = (full.backward_s - plain.backward_s)[:, 0]
    assert again_s == pytest.approx(np.full(4, again_s[0]))
    assert 0.5 * plain.forward_s[1, 0] < again_s[0] <= plain.forward_s[1, 0]
    half = pieces(job, recompute="full", recompute_layers=2)
    assert (half.backward_s - plain.backward_s)[:, 0] == pytest.approx(again_s / 2)
    most = pieces(job, recompute="full", recompute_layers=9)
    assert most.backward_s == pytest.approx(full.backward_s)
    some = pieces(job, recompute="selective")
    assert np.all(plain.backward_s < some.backward_s)
    assert np.all(some.backward_s < full.backward_s)
    assert full.forward_s == pytest.approx(plain.forward_s)
    two = pieces(job, schedule="interleaved", vp=2, recompute="full", recompute_layers=2)
    assert two.backward_s.sum() == pytest.approx(half.backward_s.sum())  # one of the two layers of each chunk


def test_a_hand_over_grows_with_its_sequences(job):
    """Twice the sequences are twice the bytes: what is not bytes is less than one of them takes."""
    one, two, four = (pieces(job, micro_batch=n).hand_over_s for n in (1, 2, 4))
    assert four - two == pytest.approx(2 * (two - one), rel=0.05)
    cut = {"tp": 2, "dp": 2, "is_sequence_parallel": True}
    whole = pieces(job, tp=2, dp=2, micro_batch=2, is_sequence_parallel=False).hand_over_s
    assert pieces(job, **cut, micro_batch=4).hand_over_s == pytest.approx(whole)
    assert pieces(job, **cut, micro_batch=2).hand_over_s < whole


def test_at_most_64_micro_batches_are_drawn(job):
    """512 sequences over four copies are 128 of one sequence, or 32 of four."""
    found = played_step(job.job, job.layout)
    assert found.num_micro_batches == 64
    assert found.notes == ("timeline: 64 of 128 micro-batches are drawn",)
    assert len(found.timeline.ranks[0]) == 2 * 64
    few = played_step(job.job, replace(job.layout, micro_batch=4))
    assert (few.num_micro_batches, few.notes) == (32, ())
    even = played_step(job.job, replace(job.layout, micro_batch=2))
    assert (even.num_micro_batches, even.notes) == (64, ())


def test_steps_without_a_pipeline_have_no_timeline(job, tmp_path):
    with pytest.raises(ScenarioError, match="no pipeline with pp = 1"):
        played_step(job.job, SimpleNamespace(pp=1))
    path = tmp_path / "step.json"
    check_timeline(read_scenario({"pp": 2}), path)
    for settings, where, words in (
        ({}, path, "no pipeline with pp = 1"),
        ({"pp": 2, "offload": "host"}, path, "--offload has none"),
        ({"pp": 2}, tmp_path, "is a folder"),
        ({"pp": 2}, tmp_path / "none" / "step.json", "there is no folder"),
    ):
        with pytest.raises(ScenarioError, match=words):
            check_timeline(read_scenario(settings), where)
