"""A paper's claims beside the reader's own deployment: the numbers of what-if, in the claim's own form, or why not."""

import json

import pytest

from orrery.cli.main import run
from orrery.evidence.feed.entry import Classification, NumericClaim
from orrery.evidence.understanding.claim_effect import (
    FIGURES,
    ClaimEffect,
    answer_of,
    askable,
    effect_of,
    figure_of,
    sentence,
    why_none,
    written,
)
from orrery.evidence.understanding.meaning import Deployment
from orrery.scenario.schema import read_scenario
from orrery.scenario.what_if.metrics import CHOICES, METRICS

MINE = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "tp": 2,
    "input_tokens": 512,
    "output_tokens": 64,
    "concurrency": 16,
}
FOUND = {
    "technique": "fp8-weights",
    "outcome": "changes",
    "metric": "output_tokens_per_s",
    "because": "weights = fp8: switched on (estimated).",
    "without": {"tpot_s": 0.02, "output_tokens_per_s": 800.0, "kv_capacity_tokens": 1000.0},
    "with": {"tpot_s": 0.016, "output_tokens_per_s": 1000.0, "kv_capacity_tokens": 1500.0},
    "difference": {
        "tpot_s": {"frac": -0.2, "low_80": -0.3, "high_80": -0.1},
        "output_tokens_per_s": {"frac": 0.25, "low_80": 0.1, "high_80": 0.4},
        "kv_capacity_tokens": {"frac": 0.5, "low_80": None, "high_80": None},
    },
}


def claim(metric, unit="ratio", low=2.0):
    return NumericClaim(
        metric=metric, low=low, high=low, unit=unit, reading="value", text="", confidence_frac=1.0, baseline="vLLM"
    )


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [
        ("throughput_ratio", "ratio", "1.25x (80 %: 1.10x to 1.40x)"),  # 1000 / 800; 1 + 0.1, 1 + 0.4
        ("tpot_ratio", "ratio", "1.25x (80 %: 1.11x to 1.43x)"),  # 0.02 / 0.016; 1 / 0.9, 1 / 0.7
        ("tbt_p99_reduction", "frac", "20 % less (80 %: 30 % less to 10 % less)"),
        ("throughput_increase", "frac", "25 % more (80 %: 10 % more to 40 % more)"),
        ("memory_ratio", "ratio", "1.50x"),  # exact: no interval
        ("tpot_mean", "s", "20 ms → 16 ms"),
        ("throughput", "tokens_per_s", "800 tokens/s → 1,000 tokens/s"),
        ("speedup", "ratio", "1.25x (80 %: 1.10x to 1.40x)"),  # by the deployment's own metric
    ],
)
def test_an_effect_is_written_as_its_claim_is(metric, unit, expected):
    assert written(effect_of(claim(metric, unit), FOUND), unit) == expected


@pytest.mark.parametrize(
    ("metric", "unit", "words"),
    [
        ("accuracy", "frac", "compares no accuracy"),
        ("tpot_ratio", "points", "compares no TPOT ratio"),
        ("capacity_ratio", "ratio", "--find-capacity"),
        ("baseline_throughput", "tokens_per_s", "the baseline's number"),
        ("energy_reduction", "frac", "this deployment has no energy"),
    ],
)
def test_a_claim_that_is_no_figure_of_a_deployment_says_why(metric, unit, words):
    effect = effect_of(claim(metric, unit), FOUND)
    assert not effect.is_computed
    assert words in effect.because
    assert (written(effect, unit), figure_of(effect)) == ("", "")
    assert sentence(effect, unit) == f"not computed: {effect.because}"


def test_a_technique_without_effect_is_no_change():
    still = {"frac": 0.0, "low_80": 0.0, "high_80": 0.0}
    same = FOUND | {"outcome": "no effect", "with": FOUND["without"], "difference": {"tpot_s": still}}
    assert written(effect_of(claim("tpot_ratio"), same), "ratio") == "no change"


def test_the_likeliest_technique_that_can_be_tried_answers_and_no_later_one_is_asked():
    asked = []

    def ask(name):
        asked.append(name)
        return FOUND | {"technique": name, "outcome": "changes" if name == "second" else "does not apply"}

    assert answer_of(("first", "second", "third"), ask)["technique"] == "second"
    assert asked == ["first", "second"]
    assert answer_of(("first", "third"), ask)["technique"] == "first", "of none, why the likeliest cannot"
    assert answer_of((), ask) is None


def test_what_no_command_takes_is_said():
    assert askable(Classification(techniques=(("int4-weights", 0.9), ("no-such", 0.5)))) == ("int4-weights",)
    assert "resembles no technique" in why_none(Classification())
    assert "No command takes no-such" in why_none(Classification(techniques=(("no-such", 0.5),)))
    assert "only on paper" in why_none(Classification(techniques=(("no-such", 0.5),)), "it exists only on paper")


def test_every_word_of_a_figure_is_one_of_what_if():
    assert {word for word in FIGURES.values() if word} <= set(CHOICES)
    assert all(figure_of(ClaimEffect(because="", metric=m.name, before=1.0, after=2.0)) for m in METRICS)


def test_the_numbers_are_those_of_the_command(capsys):
    flags = [word for key, value in MINE.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    assert run(["what-if", "fp8-weights", *flags, "--json"]) == 0
    (by_command,) = json.loads(capsys.readouterr().out)["results"]
    understood = Classification(
        techniques=(("fp8-weights", 0.8),), claims=(claim("throughput_ratio"), claim("ttft_reduction", "frac"))
    )
    found = Deployment(read_scenario(MINE)).claim_effects(understood)
    assert [e.metric for e in found] == ["output_tokens_per_s", "ttft_s"]
    for effect in found:
        assert effect.before == by_command["without"][effect.metric]
        assert effect.after == by_command["with"][effect.metric]
        assert effect.low_80 == by_command["difference"][effect.metric]["low_80"]
        assert effect.difference_frac == pytest.approx(by_command["difference"][effect.metric]["frac"])
        assert effect.because == by_command["because"]
