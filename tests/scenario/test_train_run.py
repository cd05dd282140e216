"""The whole run of a training job: every second of it has a name."""

import json

import pytest

import orrery
from orrery.base.errors import OrreryError

JOB = {
    "model": "llama-3.2-1b",
    "device": "h100-sxm",
    "devices": 8,
    "global_batch": 64,
    "seq_len": 4096,
    "sharding": "zero3",
    "train_tokens": 1e10,
}
FAILS = {"device_mtbf_s": 1e6, "checkpoint": "blocking"}
STEPS = -(-(10**10) // (64 * 4096))


def test_everything_together_adds_up():
    answer = orrery.train(**JOB, **FAILS, eval_every_steps=100, eval_batches=5, data_tokens_per_s=4e5, startup_s=90)
    run = answer.run
    assert set(run.parts) == {"steps", "evaluation", "waiting for data", "startup", "failures and checkpoints"}
    assert min(run.parts.values()) > 0
    assert sum(run.parts.values()) == pytest.approx(run.time_s, rel=1e-12)
    assert run.goodput.time_s + 90 == pytest.approx(run.time_s)
    assert run.goodput.useful_frac * run.goodput.time_s == pytest.approx(
        run.parts["steps"] + run.parts["evaluation"] + run.parts["waiting for data"]
    )
    assert run.energy_j == pytest.approx(run.time_s * 8 * answer.power_w)
    out = answer.to_json()["run"]
    json.dumps(out, allow_nan=False)
    assert out["parts"] == pytest.approx(run.parts)
    assert out["num_evaluations"] == run.num_evaluations


def test_evaluation_is_forward_passes():
    answer = orrery.train(**JOB, eval_every_steps=1000, eval_batches=7)
    run = answer.run
    assert run.num_steps == STEPS
    assert run.num_evaluations == STEPS // 1000
    each_s = run.parts["evaluation"] / (run.num_evaluations * 7)
    assert answer.parts["forward"] <= each_s < 0.5 * answer.step_time_s
    assert run.time_s == pytest.approx(STEPS * answer.step_time_s + run.parts["evaluation"])
    assert orrery.train(**JOB, eval_every_steps=STEPS + 1, eval_batches=7).run.parts["evaluation"] == 0


def test_a_pipeline_fills_in_evaluation_too():
    job = JOB | {"sharding": "none", "pp": 4, "framework": "megatron-lm"}
    answer = orrery.train(**job, eval_every_steps=STEPS, eval_batches=1)
    assert answer.run.num_evaluations == 1
    assert answer.run.parts["evaluation"] > answer.parts["forward"] + 0.2 * answer.parts["bubble"]


def test_no_batch_takes_less_than_its_tokens_over_what_loaders_deliver():
    step_s = orrery.train(**JOB).step_time_s
    rate = 64 * 4096 / (1.5 * step_s)
    answer = orrery.train(**JOB, data_tokens_per_s=rate)
    assert answer.step_time_s == step_s  # the step itself is what it was
    assert answer.run.parts["waiting for data"] == pytest.approx(STEPS * 0.5 * step_s)
    assert answer.run.time_s == pytest.approx(1e10 / rate, rel=1e-4)
    assert orrery.train(**JOB, data_tokens_per_s=10 * rate).run.parts["waiting for data"] == 0
    both = orrery.train(**JOB, data_tokens_per_s=rate, eval_every_steps=STEPS, eval_batches=1).run
    assert both.time_s == pytest.approx((STEPS + 1) * 1.5 * step_s)


def test_starting_up_joins_every_restart():
    quick, slow = (orrery.train(**JOB, **FAILS, checkpoint_interval_s=600, startup_s=s).run for s in (0, 300))
    failures = quick.goodput.num_failures
    assert failures > 0.05
    assert slow.parts["startup"] == 300
    assert slow.time_s - quick.time_s == pytest.approx(300 * (1 + failures), rel=0.01)
    as_restart = orrery.train(**JOB, **FAILS, checkpoint_interval_s=600, restart_s=900).run
    assert slow.goodput.time_s == pytest.approx(as_restart.goodput.time_s)


def test_offloaded_runs_have_the_same_parts():
    job = {k: v for k, v in JOB.items() if k != "sharding"}
    answer = orrery.train(**job, **FAILS, offload="zero-infinity", eval_every_steps=10, eval_batches=1, startup_s=60)
    assert sum(answer.run.parts.values()) == pytest.approx(answer.run.time_s, rel=1e-12)
    assert 0 < answer.run.parts["evaluation"] / answer.run.num_evaluations < answer.step_time_s


WRONG = [
    ({"eval_every_steps": 10}, "eval_batches"),
    ({"eval_batches": 10}, "eval_every_steps"),
    ({"eval_every_steps": 0, "eval_batches": 1}, "whole number"),
    ({"data_tokens_per_s": 0}, "above 0"),
    ({"startup_s": -1}, "from 0"),
    ({"startup_s": 5, "train_tokens": None}, "train_tokens"),
    ({"data_tokens_per_s": 5, "train_tokens": None}, "train_tokens"),
    ({"eval_every_steps": 5, "eval_batches": 5, "train_tokens": None}, "train_tokens"),
    ({"node_mtbf_s": 1e8, "train_tokens": None}, "train_tokens"),
    ({"recompute_layers": 4}, "recompute = full"),
    ({"secondary_group": 4, "sharding": "zero1"}, "zero3"),
    ({"secondary_group": 3}, "dp x cp = 8"),
    ({"sharding_group": 4, "sharding": "none"}, "zero1"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(c) for c, _ in WRONG])
def test_wrong_input_names_what_and_a_way_out(change, message):
    with pytest.raises(OrreryError, match="(?s)" + message):
        orrery.train(**{k: v for k, v in (JOB | change).items() if v is not None})
