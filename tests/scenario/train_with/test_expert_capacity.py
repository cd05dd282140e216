"""``--expert-capacity-factor``: rows that are dropped and padded, by hand, and what comes back without it."""

import json
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run

JOB = {
    "model": "mixtral-8x7b",
    "device": "h100-sxm",
    "devices": 64,
    "ep": 8,
    "global_batch": 512,
    "seq_len": 4096,
    "sharding": "zero1",
    "recompute": "full",
}
UNEVEN = "0.30\n0.20\n0.15\n0.10\n0.10\n0.05\n0.05\n0.05\n"  # two of eight experts a token: none is chosen by all


def trained(**more):
    return orrery.train(**(JOB | more))


def rows(**more):
    return {row["way"]: row for row in trained(**more).table("expert capacity")}


def without_words(answer):
    return {k: v for k, v in answer.to_json().items() if k not in ("settings", "techniques", "notes")}


@pytest.fixture
def loads(tmp_path):
    path = tmp_path / "loads.txt"
    path.write_text(UNEVEN)
    return str(path)


def test_rows_by_hand(loads):
    """At 1.2 times the mean expert's eighth, 0.15: 0.15 of the first and 0.05 of the second expert's are dropped."""
    found = rows(expert_loads=loads, expert_capacity_factor=1.2)
    assert found["no limit"]["fullest_ratio"] == pytest.approx(8 * 0.30)
    for way in ("dropped", "padded"):
        assert found[way]["dropped_frac"] == pytest.approx(0.20)
        assert found[way]["fullest_ratio"] == pytest.approx(1.2)
        assert found[way]["capacity_tokens"] == 1229  # 1.2 x 4096 tokens x 2 / 8 experts, rounded up
    assert found["dropped"]["computed_ratio"] == pytest.approx(0.80)
    assert found["padded"]["computed_ratio"] == pytest.approx(1.2)


def test_the_step_is_that_of_its_row_and_the_model_does_less(loads):
    found = rows(expert_loads=loads, expert_capacity_factor=1.2)
    plain, dropped, padded = (
        trained(expert_loads=loads, **more)
        for more in ({}, {"expert_capacity_factor": 1.2}, {"expert_capacity_factor": 1.2, "pad_experts": True})
    )
    assert [x.step_time_s for x in (plain, dropped, padded)] == [row["step_s"] for row in found.values()]
    experts = 2.0 * 3 * 4096 * 14336 * 2 * 32 * 3  # operations of a token's two experts, both passes, all layers
    tokens = plain.job.tokens_per_step
    flops = [x.model_flops_per_s_per_device * x.step_time_s * 64 for x in (plain, dropped, padded)]
    assert flops[0] - flops[1] == pytest.approx(0.20 * experts * tokens, rel=1e-6)
    assert flops[2] == pytest.approx(flops[1]), "empty rows are no work of the model"
    hardware = [x.hfu_frac * x.step_time_s for x in (dropped, padded)]
    assert hardware[1] > hardware[0]
    assert "loss is not predicted" in " ".join(dropped.notes)


def test_a_capacity_that_no_expert_reaches_changes_nothing_and_says_so(loads):
    plain, wide = trained(expert_loads=loads), trained(expert_loads=loads, expert_capacity_factor=2.5)
    assert without_words(wide) == without_words(plain)
    assert "nothing is dropped" in " ".join(wide.notes)
    assert trained(expert_loads=loads, pad_experts=False).to_json()["notes"] == plain.to_json()["notes"]


def test_even_loads_padded_to_the_mean_are_the_plain_step():
    assert trained(expert_capacity_factor=1.0, pad_experts=True).step_time_s == pytest.approx(trained().step_time_s)
    wide = trained(expert_capacity_factor=1.5, pad_experts=True)
    assert wide.parts["expert parallel"] == pytest.approx(1.5 * trained().parts["expert parallel"], rel=0.05)


@settings(max_examples=15, deadline=None)
@given(
    exponent=st.floats(0.0, 1.5),
    factors=st.lists(st.floats(0.1, 8.0), min_size=2, max_size=4, unique=True),
    ep=st.sampled_from([1, 2, 8]),
    placement=st.sampled_from([None, "rearranged", "redundancy"]),
)
def test_more_capacity_drops_less_and_takes_no_less_time(exponent, factors, ep, placement):
    job = {"ep": ep, "expert_loads": f"zipf:{exponent:.3f}", "model": "qwen3-30b-a3b"}
    job |= {"expert_placement": placement} if placement and ep > 1 else {}
    last_s, last_frac = 0.0, inf
    for factor in sorted(factors):
        found = rows(expert_capacity_factor=factor, **job)
        dropped, padded = found["dropped"], found["padded"]
        assert 0.0 <= dropped["dropped_frac"] <= max(0.0, last_frac) + 1e-12
        assert dropped["computed_ratio"] == pytest.approx(1.0 - dropped["dropped_frac"])
        assert padded["computed_ratio"] == pytest.approx(factor)
        assert last_s * (1 - 1e-9) <= dropped["step_s"] <= found["no limit"]["step_s"] * (1 + 1e-9)
        assert padded["step_s"] >= dropped["step_s"] * (1 - 0.01)  # whole tiles apart
        last_s, last_frac = dropped["step_s"], dropped["dropped_frac"]


def test_command_file_and_keyword_say_the_same(tmp_path, capsys, loads):
    more = {"expert_loads": loads, "expert_capacity_factor": 1.2}
    expected = trained(**more, pad_experts=True).to_json()
    flags = [w for k, v in (JOB | more).items() for w in ("--" + k.replace("_", "-"), str(v))]
    assert run(["train", *flags, "--pad-experts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["techniques"] == expected["techniques"]
    file = tmp_path / "job.toml"
    file.write_text("\n".join(f"{k} = {json.dumps(v)}" for k, v in (JOB | more | {"pad_experts": True}).items()))
    assert run(["train", "--scenario", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step_time_s"] == expected["step_time_s"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pad_experts": True}, "pad_experts: needs to know up to what; write expert_capacity_factor"),
        ({"model": "llama-3.1-8b", "ep": 1, "expert_capacity_factor": 1.2}, "has no experts"),
        (
            {"expert_capacity_factor": 1.2, "pad_experts": True, "dispatcher": "deepep"},
            "deepep sends no empty rows; write dispatcher = all-to-all",
        ),
        ({"expert_capacity_factor": 0.0}, "expert_capacity_factor"),
        ({"expert_capacity_factor": 1.2, "seq_lengths": "lognormal:500:1"}, "expert_capacity_factor: does not go"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(more, message):
    with pytest.raises(ScenarioError, match=message):
        trained(**more)


@pytest.mark.parametrize(
    ("more", "note"),
    [
        (
            {"expert_overlap": "expert-pipeline"},
            "expert_overlap = expert-pipeline: no effect on this deployment: ep is 1",
        ),
        ({"expert_placement": "redundancy"}, "expert_placement = redundancy: no effect on this deployment: ep is 1"),
        ({"expert_loads": "zipf:0.8"}, "expert_loads: no effect on this deployment: ep is 1"),
    ],
)
def test_where_no_expert_is_elsewhere_its_settings_say_that_they_change_nothing(more, note):
    job = {"ep": 1, "model": "qwen3-30b-a3b", "sharding": "zero3"}
    plain, asked = trained(**job), trained(**job, **more)
    assert asked.step_time_s == plain.step_time_s
    assert any(said.startswith(note) for said in asked.notes)


@pytest.mark.parametrize("name", ["expert_loads", "expert_placement", "expert_overlap", "dispatcher"])
def test_settings_of_experts_elsewhere_are_refused_where_all_are_here(name):
    more = {"expert_loads": "zipf:0.8", "expert_placement": "redundancy", "expert_overlap": "expert-pipeline"}
    job = {"model": "qwen3-30b-a3b", "device": "h100-sxm", "devices": 8, "global_batch": 64, "seq_len": 4096}
    with pytest.raises(ScenarioError, match=f"{name}: every rank has all experts with --offload zero-offload"):
        orrery.train(**job, offload="zero-offload", **{name: (more | {"dispatcher": "deepep"})[name]})


def test_experts_with_a_capacity_on_a_device_whose_states_are_elsewhere():
    job = {"model": "qwen3-30b-a3b", "device": "h100-sxm", "devices": 8, "global_batch": 64, "seq_len": 4096}
    job |= {"offload": "zero-offload", "host_memory_bytes": 4e12, "expert_capacity_factor": 0.5}
    whole, half = (orrery.train(**(job | {"expert_capacity_factor": x})) for x in (1.0, 0.5))
    assert half.step_time_s < whole.step_time_s
    experts = 2.0 * 3 * 2048 * 768 * 8 * 48 * 3
    flops = [x.model_flops_per_s_per_device * x.step_time_s * 8 for x in (whole, half)]
    assert flops[0] - flops[1] == pytest.approx(0.5 * experts * 64 * 4096, rel=1e-3)
