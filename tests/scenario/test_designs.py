"""Designs side by side: differences by hand, paired errors, and what cannot be compared."""

import json

import pytest

from orrery.base.cost import Interval
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.ask import estimate
from orrery.scenario.compare import changed, compare, in_words
from orrery.scenario.what_if import what_if
from orrery.scenario.what_if.difference import Difference

BASE = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 128, "concurrency": 8}


def test_a_difference_is_one_figure_over_the_other_and_equal_designs_have_none():
    same, fp8 = compare([BASE, dict(BASE), BASE | {"weights": "fp8"}]).designs[1:]
    assert {d.frac for d in same.difference.values()} == {0.0}
    plain, other = estimate(**BASE), estimate(**BASE, weights="fp8")
    assert fp8.difference["tpot_s"].frac == pytest.approx(other.estimate.tpot_s / plain.estimate.tpot_s - 1)
    assert fp8.name == "weights fp8"


def test_shared_errors_cancel_as_in_what_if():
    fp8 = compare([BASE, BASE | {"weights": "fp8"}]).designs[1]
    (asked,) = what_if("fp8-weights", **BASE, break_even=()).results
    assert fp8.difference == dict(asked.difference)
    d = fp8.difference["tpot_s"]

    def width(around: Interval) -> float:
        return around.high_80 / around.low_80

    alone = width(estimate(**BASE).intervals()["tpot_s"])
    assert (1 + d.high_80) / (1 + d.low_80) < alone**2
    assert d.low_80 < d.frac < d.high_80


def test_a_design_that_does_not_fit_stays_in_the_list():
    big = BASE | {"model": "llama-3.1-405b"}
    answer = compare([BASE, big])
    assert answer.designs[1].side.infeasible is not None
    assert answer.to_json()["designs"][1]["infeasible"]["need"] > 5e11
    assert compare([big, BASE]).designs[1].difference == {}


@pytest.mark.parametrize(
    ("change", "question"),
    [({"max_devices": 2, "rate": 1, "concurrency": None, "slo": ["tpot:50"]}, "plan"), ({}, "simulate")],
)
def test_the_kind_of_the_designs_says_which_command_answers(change, question):
    base = {k: v for k, v in (BASE | {"num_requests": 24, "weights": "bf16"} | change).items() if v is not None}
    if question == "plan":
        del base["num_requests"]
    answer = compare([base, base | {"weights": "fp8"}], is_simulated=question == "simulate")
    assert answer.question == question
    assert answer.designs[1].difference["tpot_s"].frac < 0


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(frac=0.0, low_80=0.0, high_80=0.0), "the same"),
        (Difference(frac=-0.12, low_80=-0.18, high_80=-0.07), "12 % lower (80 %: 7 to 18)"),
        (Difference(frac=0.5, low_80=0.1, high_80=0.9), "50 % higher (80 %: 10 to 90)"),
        (Difference(frac=0.02, low_80=-0.05, high_80=0.1), "2 % higher, within the interval (80 %: -5 % to +10 %)"),
        (Difference(frac=1.5), "150 % higher"),
    ],
)
def test_a_difference_in_words(difference, words):
    assert in_words(difference) == words


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("devise=h200-sxm", "'devise' is no setting; write device"),
        ("tp", "got 'tp'; write NAME=VALUE"),
        ("tp=", "write NAME=VALUE"),
        (" ", "got nothing"),
    ],
)
def test_a_change_that_cannot_be_read_is_one_message(text, says):
    with pytest.raises(ScenarioError, match=says):
        changed(BASE, text)


def test_a_change_is_on_top_of_the_first():
    assert changed({"tp": 2, "device": "h100-sxm"}, "--tp=8 max-num-seqs=4") == {
        "tp": "8",
        "device": "h100-sxm",
        "max_num_seqs": "4",
    }
    assert changed({}, "slo=ttft:1 slo=tpot:2") == {"slo": ["ttft:1", "tpot:2"]}


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ScenarioError, match="got 1 designs"):
        compare([BASE])
    with pytest.raises(ScenarioError, match="deployments and searches"):
        compare([BASE, BASE | {"max_devices": 2}])
    with pytest.raises(ScenarioError, match="names: got 1 for 2"):
        compare([BASE, BASE], names=["a"])


def test_the_command_takes_flags_files_and_changes(tmp_path, capsys):
    flags = [x for key, value in BASE.items() for x in (f"--{key.replace('_', '-')}", str(value))]
    file = tmp_path / "mine.toml"
    assert run(["compare", *flags, "--with", "weights=fp8", "--save-scenario", str(file), "--json"]) == 0
    typed = json.loads(capsys.readouterr().out)
    assert run(["compare", str(file), "--with", "weights=fp8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["designs"][1]["difference"] == typed["designs"][1]["difference"]
    assert run(["compare", *flags, "--with", "weights=fp8"]) == 0
    text = capsys.readouterr().out
    assert "weights fp8, beside llama-3.1-8b on h100-sxm" in text
    assert "Time per output token (TPOT): " in text
    assert run(["compare", *flags]) == 2
    assert run(["compare", str(file), str(file), "--tp", "2"]) == 2
    assert run(["compare", *flags, "--model", "llama-3.1-405b", "--with", "device=l40s"]) == 3


def test_one_kind_of_traffic_replaces_another() -> None:
    base = {"model": "m", "concurrency": 32}
    assert changed(base, "rate=4") == {"model": "m", "rate": "4"}
    assert changed(base, "concurrency=64") == {"model": "m", "concurrency": "64"}
    assert changed({"trace": "chat", "users": 3}, "rate=4") == {"trace": "chat", "rate": "4"}
    assert changed({"trace": "chat", "rate": 4}, "trace=code") == {"trace": "code"}
    assert changed({"trace": "chat", "rate": 4}, "trace=code rate=2") == {"trace": "code", "rate": "2"}
