"""What a plan is best at, the clock of its devices, and unequal cuts: by hand, off is absent, and in three doors."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.file import load_scenario

LLAMA = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 512,
    "output_tokens": 64,
    "engine_version": "0.11.0",
    "weights": "bf16",
    "kv": "bf16",
}
GOAL = LLAMA | {"rate": 4, "max_devices": 4, "slo": ["tpot:40"]}
MIXTRAL = LLAMA | {"model": "mixtral-8x7b", "concurrency": 32}


def plans(**change):
    return orrery.plan(**GOAL | change).plans


def test_latency_takes_all_devices_and_the_shortest_request():
    cheap, quick = plans(objective="cost"), plans(objective="latency")
    assert quick[0].operation.num_devices == 4
    assert cheap[0].operation.num_devices == 1
    lasts = [p.operation.ttft_s + 63 * p.operation.tpot_s for p in quick]
    assert lasts == sorted(lasts)
    assert lasts[0] <= min(p.operation.ttft_s + 63 * p.operation.tpot_s for p in cheap)
    assert quick[0].operation.e2el_s == pytest.approx(lasts[0])


def test_energy_ranks_by_joules_of_a_token():
    found = plans(objective="energy")
    joules = [p.energy_j_per_token_with_host for p in found]
    assert joules == sorted(joules)
    assert found[0].operation.energy_j_per_token == pytest.approx(joules[0], rel=1e-6)
    assert joules[0] <= min(p.energy_j_per_token_with_host for p in plans(objective="latency"))


def test_cost_is_what_is_taken_without_an_objective():
    assert [str(p.operation.deployment.layout) for p in plans()] == [
        str(p.operation.deployment.layout) for p in plans(objective="cost")
    ]


def test_a_lower_clock_wins_by_energy_and_never_by_cost():
    asked = {"clock_frac": "1,0.6"}
    thrifty, cheap = plans(objective="energy", **asked)[0], plans(objective="cost", **asked)[0]
    assert thrifty.operation.candidate.option.clock_frac == 0.6
    assert cheap.operation.candidate.option.clock_frac == 1.0
    assert thrifty.energy_j_per_token_with_host < plans(objective="energy")[0].energy_j_per_token_with_host
    assert any("60 %" in note for note in thrifty.notes)


def test_the_full_clock_is_absent_to_the_bit():
    base = LLAMA | {"concurrency": 16}
    assert orrery.estimate(**base, clock_frac="1").estimate.tpot_s == orrery.estimate(**base).estimate.tpot_s
    slow = orrery.estimate(**base, clock_frac="0.5").estimate
    full = orrery.estimate(**base).estimate
    assert slow.power_w < full.power_w
    assert slow.ttft_s > full.ttft_s
    one, other = (orrery.simulate(**base, num_requests=64, clock_frac=c).simulated.duration_s for c in ("1", "0.5"))
    assert other > one
    assert one == orrery.simulate(**base, num_requests=64).simulated.duration_s


def test_equal_cuts_are_tensor_parallel_to_the_bit():
    cut = orrery.estimate(**MIXTRAL, cut="attention=4,ffn=4").estimate
    assert cut.tpot_s == orrery.estimate(**MIXTRAL, tp=4).estimate.tpot_s


def test_unequal_cuts_by_hand():
    """Attention on 2 of 8 devices: four ranks of attention; experts over all eight."""
    answer = orrery.estimate(**MIXTRAL, cut="attention=2,ffn=8")
    layout = answer.question.deployment.layout
    assert (layout.tp, layout.dp, layout.ep, layout.etp, layout.num_devices) == (2, 4, 1, 8, 8)
    other = orrery.estimate(**MIXTRAL, cut="attention=8,ffn=2").question.deployment.layout
    assert (other.tp, other.dp, other.ep, other.etp) == (8, 1, 4, 2)


def test_a_plan_lists_unequal_cuts_only_where_they_are_asked_for():
    asked = {k: v for k, v in MIXTRAL.items() if k != "concurrency"} | {"rate": 4, "max_devices": 8}

    def cuts(**change):
        found = orrery.plan(**asked, **change, all_plans=True).plans
        return {p.operation.deployment.layout.etp for p in found}

    assert cuts() == {0}
    assert {4} < cuts(cut="any")
    assert cuts(cut="attention=2,ffn=8") == {8}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"clock_frac": "2"}, "write parts of 0.1 to 1"),
        ({"clock_frac": "1,0.5"}, "estimate and simulate take one"),
        ({"cut": "attention=2,ffn=8"}, "no experts"),
        ({"cut": "attention=3,ffn=8", "model": "mixtral-8x7b"}, "one a multiple of the other"),
        ({"cut": "any", "model": "mixtral-8x7b"}, "of orrery plan"),
        ({"cut": "attention=2,ffn=8", "model": "mixtral-8x7b", "tp": 2}, "exclude each other"),
    ],
)
def test_what_means_nothing_is_refused(change, says):
    with pytest.raises(ScenarioError, match=says):
        orrery.estimate(**LLAMA | {"concurrency": 4} | change)


def test_objectives_that_need_a_load_say_so():
    with pytest.raises(ScenarioError, match="write rate or users"):
        orrery.plan(**LLAMA, objective="latency")
    with pytest.raises(ScenarioError, match="latency or energy"):
        orrery.plan(**GOAL, objective="beauty")


def test_three_doors_give_one_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = GOAL | {"objective": "energy", "clock_frac": "1,0.7", "max_devices": 1}
    found = orrery.plan(**asked).plans[0]
    path = tmp_path / "goal.toml"
    path.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in asked.items()))
    assert orrery.plan(load_scenario(path)).plans[0].operation.tpot_s == found.operation.tpot_s
    flags = [word for k, v in (asked | {"slo": "tpot:40"}).items() for word in (f"--{k.replace('_', '-')}", str(v))]
    assert run(["plan", *flags, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["plans"][0]
    assert first["tpot_s"] == found.operation.tpot_s
    assert first["clock_frac"] == 0.7


@given(clock=st.sampled_from([0.3, 0.6, 0.9]), tp=st.sampled_from([1, 4]), load=st.sampled_from([1, 64]))
@settings(max_examples=8, deadline=None)
def test_a_lower_clock_is_never_faster_and_never_draws_more(clock: float, tp: int, load: int):
    base = LLAMA | {"tp": tp, "concurrency": load}
    full, slow = (orrery.estimate(**base, clock_frac=c).estimate for c in ("1", str(clock)))
    assert slow.latency_s >= full.latency_s * (1 - 1e-9)
    assert slow.power_w <= full.power_w * (1 + 1e-9)
