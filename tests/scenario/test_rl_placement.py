"""``train --rl --rl-placement``: one answer from command, file and Python; what is taken and what is refused."""

import json

import pytest

import orrery
from orrery.base.errors import OrreryError, ScenarioError
from orrery.cli.main import run
from orrery.planner.rlhf.generation import Generation
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.rl import train_rl
from orrery.scenario.rl_placement import RlPlacementAnswer, train_rl_placement
from orrery.scenario.rl_placement_job import placement_question
from orrery.scenario.rl_plan import train_rl_plan
from orrery.scenario.schema import merged

JOB = {
    "model": "llama-3.2-1b",
    "device": "h100-sxm",
    "devices": 8,
    "prompts_per_step": 16,
    "generations_per_prompt": 8,
    "output_tokens": 200,
    "knob": "rl_placement.num_proposals=200",
}


def placed(**settings):
    found = train_rl_placement(**{**JOB, "rl_placement": "searched", **settings})
    assert isinstance(found, RlPlacementAnswer)
    assert found.settings["rl"] is True
    return found


@pytest.fixture(scope="module")
def searched():
    return placed(algorithm="ppo", reward_model="llama-3.1-8b")


def test_one_answer_by_every_way(searched, tmp_path, capsys):
    file = tmp_path / "rl.toml"
    settings = {**JOB, "rl": True, "rl_placement": "searched", "algorithm": "ppo", "reward_model": "llama-3.1-8b"}
    lines = (f"{k} = {json.dumps([v] if k == 'knob' else v)}" for k, v in settings.items())
    file.write_text("\n".join(lines))
    assert run(["train", "--scenario", str(file), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["step_time_s"] == pytest.approx(searched.step_time_s, rel=1e-12)
    assert out["calls"][0]["call"] == "generate"
    assert {row["rl_placement"] for row in out["placements"]} >= {"searched", "symmetric", "zero3", "asynchronous"}
    assert out["usd_per_step"] == pytest.approx(out["price"]["usd_per_hour"] * 8 * out["step_time_s"] / 3600)


def test_the_call_of_each_model_has_its_size(searched):
    calls = {row["call"]: row for row in searched.table("calls")}
    assert list(calls) == [
        "generate",
        "reward",
        "reference",
        "values",
        "log-probabilities",
        "train actor",
        "train critic",
    ]
    assert "8B" in calls["reward"]["model"]
    assert calls["reward"]["work_s"] > calls["reference"]["work_s"]
    assert searched.step_time_s == max(row["end_s"] for row in calls.values())
    assert searched.moved_s == sum(row["moved_s"] for row in calls.values())


def test_a_searched_placement_is_no_worse_than_what_it_begins_with(searched):
    rows = {row["rl_placement"]: row for row in searched.table("placements")}
    assert rows["searched"]["step_time_s"] <= rows["symmetric"]["step_time_s"]
    assert rows["symmetric"]["moved_s"] == rows["zero3"]["moved_s"] == 0.0
    assert rows["disjoint"]["moved_s"] > 0.0
    assert all(row["peak_memory_bytes"] <= searched.plan.capacity_bytes for row in rows.values())


def test_one_device_leaves_nothing_to_place():
    """All placements that fit are one: no weights move, and calls follow each other."""
    alone = placed(devices=1, reference=False)
    assert alone.moved_s == 0.0
    rows = {row["rl_placement"]: row for row in alone.table("placements")}
    assert rows["searched"]["step_time_s"] == rows["symmetric"]["step_time_s"]
    assert not rows["asynchronous"]["fits"]
    assert not rows["disjoint"]["fits"]


def test_algorithms_make_the_calls():
    group = placed(old_logprobs=False)
    assert [row["call"] for row in group.table("calls")] == ["generate", "reference", "train actor"]
    bare = placed(algorithm="dapo", old_logprobs=False)
    assert [row["call"] for row in bare.table("calls")] == ["generate", "train actor"]


def test_staleness_is_what_hides_the_shorter_pool():
    in_turn, ahead, further = (placed(rl_placement="asynchronous", max_staleness=k, devices=4) for k in (0, 1, 3))
    assert ahead.step_time_s < in_turn.step_time_s
    assert further.step_time_s == ahead.step_time_s


def test_rollouts_take_what_the_simulator_says():
    """Eight engines of one device: the closed form of a batch with a long tail is near its simulation."""
    settings = {k: v for k, v in JOB.items() if k != "knob"} | {"engine_version": "0.11"}
    simulated = train_rl(**settings, generation_tp=1)
    job = placement_question(merged(None, {**settings, "rl": True, "rl_placement": "searched"})).job
    assert Generation(job, "actor").run(1, 1, 16).time_s == pytest.approx(simulated.step.rollouts.time_s, rel=0.2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rl_placement": None}, "rl_placement: is missing; write one of"),
        ({"rl_placement": "serched"}, "searched"),
        ({"tp": 2}, "tp: a placement of calls has no use for it"),
        ({"reward_s": 1.0}, "reward_s: a placement of calls has no use for it"),
        ({"max_staleness": 1}, "max_staleness: with searched every batch is written by the newest weights"),
        ({"critic_model": "llama-3.2-1b"}, "critic_model: grpo trains no critic"),
        ({"algorithm": "dapo", "reference_model": "llama-3.2-1b"}, "reference_model: there is no reference policy"),
        ({"global_batch": 48}, "global_batch: 16 x 8 responses are no whole number of updates of 48"),
        ({"knob": "rl_placement.proposals=3"}, "has no knob 'proposals'"),
        ({"knob": "rl_placement.num_proposals=0"}, "num_proposals = 0"),
        ({"output_tokens": None}, "output_tokens: is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(OrreryError, match=words):
        train_rl_placement(**{**JOB, "rl_placement": "searched", **settings})


@pytest.mark.parametrize("ask", [train_rl, train_rl_plan, orrery.train])
def test_other_answers_refuse_a_placement(ask):
    given = {k: v for k, v in JOB.items() if k != "knob"} | {"rl_placement": "searched"}
    with pytest.raises(ScenarioError, match=r"rl_placement"):
        ask(**given)


def test_what_does_not_fit_says_what_is_missing():
    found = train_rl_placement(**{**JOB, "model": "llama-3.1-70b", "rl_placement": "searched"})
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.need > found.infeasible.have
