"""``train --rl`` from Python: what a scenario means, what is refused, what does not fit, and plans typed in again."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.rl.passes import PHASES
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.rl import RlAnswer, train_rl
from orrery.scenario.rl_plan import flags_of, train_rl_plan
from orrery.scenario.train import train

SMALL = {
    "model": "llama-3.2-1b",
    "device": "h100-sxm",
    "devices": 8,
    "prompts_per_step": 16,
    "generations_per_prompt": 8,
    "output_tokens": 300,
    "max_output_tokens": 2000,
    "engine_version": "0.11",
}


def test_an_answer_says_everything():
    found = train_rl(**SMALL)
    assert isinstance(found, RlAnswer)
    out = found.to_json()
    assert out["step_time_s"] == pytest.approx(sum(out["phases"].values()))
    assert set(out["phases"]) <= set(PHASES)
    assert sum(out["shares"].values()) == pytest.approx(1.0)
    assert out["samples_per_s"] == pytest.approx(128 / out["step_time_s"])
    assert [p["role"] for p in out["pools"]] == ["training", "generation"]
    assert all(p["memory"]["fits"] and 0.0 <= p["idle_frac"] <= 1.0 for p in out["pools"])
    for name, ends in out["intervals"].items():
        assert ends["low_95"] <= ends["low_80"] <= out[name] <= ends["high_80"] <= ends["high_95"]
    assert out["usd_per_step"] > 0
    assert out["energy_j_per_step"] > 0
    assert any(cited.startswith("logprob_s") for cited in out["because"])
    assert any(note.startswith("output_tokens_std: 300 (assumed") for note in out["notes"])


def test_the_same_scenario_is_the_same_step():
    assert train_rl(**SMALL).step_time_s == train_rl(**SMALL).step_time_s != train_rl(**SMALL, seed=1).step_time_s


def test_pools_are_shared_unless_they_run_side_by_side():
    assert train_rl(**SMALL).job.is_colocated
    apart = train_rl(**SMALL, generation_devices=4).job
    assert (apart.is_colocated, apart.training.cluster.num_devices, apart.generation_devices) == (False, 4, 4)
    beside = train_rl(**SMALL, max_staleness=1).job
    assert (beside.is_colocated, beside.generation_devices, beside.max_staleness) == (False, 4, 1)


def test_algorithms():
    assert train_rl(**SMALL).job.has_reference
    assert train_rl(**SMALL).job.critic is None
    assert not train_rl(**SMALL, algorithm="dapo").job.has_reference
    assert train_rl(**SMALL, algorithm="ppo").job.critic is not None
    assert "reference log-probabilities" not in train_rl(**SMALL, reference=False).step.phases
    assert "log-probabilities" not in train_rl(**SMALL, old_logprobs=False).step.phases


def test_frameworks_differ_by_their_recipes():
    verl = train_rl(**SMALL, framework="verl").job
    assert (verl.training.framework.name, verl.layout.sharding, verl.layout.recompute) == ("fsdp", "zero3", "full")
    assert train_rl(**SMALL, framework="slime").job.generation.engine.name == "sglang"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"output_tokens": None}, "output_tokens: is missing"),
        ({"max_output_tokens": 200}, "output_tokens: a mean of 300 is more than the longest response, 200"),
        ({"max_staleness": 1, "colocated": True}, "max_staleness: pools that take turns are on policy"),
        ({"generation_devices": 8}, "generation_devices: got 8 of 8; write 1 to 7"),
        ({"global_batch": 48}, "global_batch: 16 x 8 responses are no whole number of updates of 48"),
        ({"global_batch": 4}, "global_batch: 4 sequences of an update do not divide by dp = 8"),
        ({"generation_tp": 8, "generation_devices": 4}, "generation_devices: 4 devices do not make engines of 8"),
        ({"partial_rollout": True, "tail_batching": True}, "partial_rollout and tail_batching exclude each other"),
        ({"oversampling": 2.0}, "oversampling: nothing is begun beyond need"),
        ({"critic_model": "llama-3.2-1b"}, "critic_model: grpo trains no critic"),
        ({"algorithm": "grop"}, "write 'grpo'"),
        ({"framework": "verrl"}, "verrl"),
        ({"train_tokens": 1e9}, "train_tokens: a step of RL has no use for it"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(Exception, match=words) as caught:
        train_rl(**{**SMALL, **settings})
    assert isinstance(caught.value, ScenarioError) or "verrl" in words


def test_settings_of_rl_need_rl():
    job = {"model": "llama-3.2-1b", "device": "h100-sxm", "devices": 8, "global_batch": 64, "seq_len": 2048}
    with pytest.raises(ScenarioError, match="prompts_per_step: is of RL post-training; write rl = true"):
        train(**job, prompts_per_step=64)


def test_what_does_not_fit_says_what_would():
    trainer = train_rl(**{**SMALL, "model": "llama-3.1-70b", "generation_tp": 4})
    assert isinstance(trainer, InfeasibleAnswer)
    assert "trained on" in trainer.infeasible.what
    engine = train_rl(**{**SMALL, "model": "llama-3.1-8b"}, offload_training=False, gpu_memory_utilization=0.8)
    assert isinstance(engine, InfeasibleAnswer)
    assert "--offload-training" in engine.infeasible.smallest_change


def test_a_plan_typed_in_gives_its_own_numbers():
    found = train_rl_plan(**SMALL)
    times = [p.step_time_s for p in found.plans]
    assert times == sorted(times)
    assert found.evaluated >= len(times) > 4
    assert {p.job.is_colocated for p in found.plans} == {True, False}
    for plan in (found.plans[0], found.plans[-1]):
        again = train_rl(**{**SMALL, **flags_of(plan)})
        assert again.step_time_s == pytest.approx(plan.step_time_s)


def test_a_plan_keeps_what_is_fixed():
    found = train_rl_plan(**SMALL, generation_devices=4, generation_tp=1, max_staleness=1)
    assert [(p.job.generation_devices, p.job.generation.layout.tp) for p in found.plans] == [(4, 1)]
