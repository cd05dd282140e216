"""An answer of many calls in the terminal: a table beside the estimate, a plot where there is room, one JSON object."""

import json

import pytest

ONE = (
    "estimate",
    "--model",
    "llama-3.1-8b",
    "--device",
    "h100-sxm",
    "--input-tokens",
    "500",
    "--output-tokens",
    "200",
    "--batch",
    "1",
)
MANY = (*ONE, "--reasoning", "best-of-n", "--samples", "1,4,16", "--success", "0.3", "--verifier-accuracy", "0.8")


def test_json_has_the_answer_beside_the_estimate_of_one_call(describe):
    code, plain, _ = describe(*ONE, "--json")
    assert code == 0
    code, out, notes = describe(*MANY, "--json")
    found, answer = json.loads(out), json.loads(out)["answer"]
    assert code == 0
    assert found.keys() - json.loads(plain).keys() == {"answer"}
    assert (answer["reasoning"], answer["num_samples"], answer["num_calls"]) == ("best-of-n", 16, 32)
    assert [way["num_samples"] for way in answer["ways"]] == [1, 4, 16]
    assert answer["one_call"]["time_s"] < answer["time_s"] < 2 * answer["one_call"]["time_s"]
    assert answer["intervals"]["time_s"]["low_80"] < answer["time_s"] < answer["intervals"]["time_s"]["high_80"]
    assert answer["right_frac"] == pytest.approx(0.631, abs=0.001)
    assert [way["is_on_front"] for way in answer["ways"]] == [False, True, True]
    assert "verifier_model: the model itself" in notes


def test_the_page_says_what_an_answer_takes_and_draws_it(describe, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = describe(*MANY)
    assert code == 0
    for words in (
        "One answer by best-of-n; 1 asked at once",
        "16 samples",
        "of them shared",
        "time to the answer",
        "price of a right answer",
        "$ for 1,000 answers",
        "a one call, b 1 sample",
    ):
        assert words in out
    monkeypatch.setenv("COLUMNS", "50")
    assert "a one call" not in describe(*MANY)[1]


def test_one_way_comes_with_its_interval_and_no_picture(describe):
    code, out, _ = describe(
        *ONE, "--reasoning", "sleep-time-compute", "--reasoning-knob", "num_questions=4", "--electricity", "0.1"
    )
    assert code == 0
    for words in ("num_questions 4", "an answer", "80 % interval", "time before the question"):
        assert words in out
    assert "a sample is right" not in out


def test_wrong_input_is_two_and_what_does_not_fit_three(describe):
    code, _, wrong = describe(*ONE, "--reasoning", "best-off-n")
    assert (code, "Did you mean 'best-of-n'" in wrong) == (2, True)
    code, _, wrong = describe(*ONE, "--reasoning", "best-of-n", "--verifier-model", "llama-3.1-405b")
    assert (code, "405B" in wrong) == (3, True)


def test_why_unfolds_an_answer(describe):
    code, out, _ = describe("why", "answer.usd", *MANY[1:])
    assert code == 0
    for words in ("answer.usd = ", "solve = ", "score = ", "bound by memory"):
        assert words in out


@pytest.mark.parametrize("shape", ["beam-search", "majority-vote", "tree-search", "speculative-chains"])
def test_shapes_and_rules_are_shown_with_gains_and_costs(describe, shape):
    code, out, _ = describe("show", "techniques", "--json")
    rows = {row["name"]: row for row in json.loads(out)["techniques"]}
    assert code == 0
    beside = "--draft-model NAME" if shape == "speculative-chains" else "--success P"
    assert rows[shape]["use"] == f"orrery estimate {beside} --reasoning {shape}"
    assert rows[shape]["gains"]
    assert rows[shape]["costs"]
    assert rows["diverse-tree"]["use"].endswith("--reasoning-knob prune=diverse-tree")
