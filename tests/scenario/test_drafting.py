"""``draft`` in estimates, plans and simulations."""

import json

import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.ask import Answer, estimate, plan
from orrery.scenario.simulate import simulate

SMALL = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 257}
HEAD = {"draft": "eagle", "draft_tokens": 2, "acceptance_by_position": "0.8,0.5"}


def _estimated(**settings) -> Answer:
    found = estimate(**SMALL, **settings)
    assert isinstance(found, Answer)
    return found


def test_time_per_token_is_a_steps_over_what_it_yields():
    """One request alone: 256 tokens after the first at 1 + 0.8 + 0.4 = 2.2 a step; the step checks three."""
    found = _estimated(batch=1, **HEAD)
    assert found.estimate.tpot_s == pytest.approx(found.estimate.cost.time_s / 2.2, rel=0.02)
    assert found.estimate.latency_s == pytest.approx(found.estimate.ttft_s + 256 * found.estimate.tpot_s, rel=0.02)


def test_guesses_that_never_hold_only_cost():
    none = _estimated(concurrency=4, draft="eagle", draft_tokens=2, acceptance_by_position="0,0")
    assert none.estimate.tpot_s > _estimated(concurrency=4).estimate.tpot_s


def test_no_head_is_as_it_was():
    assert _estimated(concurrency=4, draft=None).to_json()["tpot_s"] == _estimated(concurrency=4).to_json()["tpot_s"]


def test_the_simulator_says_the_same():
    found = simulate(**SMALL, **HEAD, concurrency=8, num_requests=160).to_json()
    assert found["mean_tpot_ms"] / 1e3 == pytest.approx(_estimated(concurrency=8, **HEAD).estimate.tpot_s, rel=0.1)


def test_assumed_chances_are_said():
    assert any("assumed from published averages" in n for n in _estimated(concurrency=4, draft="eagle3").notes)
    assert any("0.8, 0.5 (given)" in n for n in _estimated(concurrency=4, **HEAD).notes)


def test_a_plan_drafts_too():
    inputs = {**SMALL, "rate": 1.0, "max_devices": 1}
    first, drafted = (plan(**inputs, **more).to_json()["plans"][0] for more in ({}, HEAD))
    assert drafted["tpot_s"] < 0.75 * first["tpot_s"]
    assert '"method": "eagle"' in drafted["launch"]["vllm"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"draft": "medusa"}, "write one of mtp, eagle, eagle3, tree, prompt-tokens"),
        ({"draft": "mtp"}, "ships no MTP layer"),
        ({"draft": "eagle", "draft_tokens": 3, "acceptance_by_position": "0.8,0.5"}, "write 3"),
        ({"draft": "eagle", "acceptance_by_position": "most"}, "comma-separated shares"),
        ({"acceptance_by_position": "0.8"}, "no head guesses"),
        ({"draft": "eagle", "draft_model": "llama-3.2-1b"}, "exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        estimate(**SMALL, concurrency=4, **settings)


def test_the_least_time_per_token_knows_of_guesses():
    """All guesses may hold: the interval of an answer below the time of reading the weights once still holds it."""
    found = _estimated(concurrency=1, draft="eagle", draft_tokens=4, acceptance=1.0).estimate
    interval = found.intervals["tpot_s"]
    assert interval.low_80 <= found.tpot_s <= interval.high_80


def test_several_acceptances_are_one_a_position(capsys, tmp_path):
    """``--acceptance 0.8,0.5``, a list in a file, and ``--acceptance-by-position`` are one."""
    flags = [w for k, v in SMALL.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    path = tmp_path / "mine.toml"
    path.write_text("".join(f"{k} = {v!r}\n" for k, v in SMALL.items()) + 'draft = "eagle"\nacceptance = [0.8, 0.5]\n')
    found = [_estimated(concurrency=4, **HEAD).estimate.tpot_s]
    for words in ([*flags, "--draft", "eagle", "--acceptance", "0.8,0.5"], ["--scenario", str(path)]):
        assert run(["estimate", *words, "--concurrency", "4", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["tpot_s"])
    assert len(set(found)) == 1


@pytest.mark.parametrize("more", [{}, {"draft_model": "llama-3.2-1b"}, {"draft_tokens": 2}, {"draft_tree": "1,1"}])
def test_every_row_of_drafts_takes_shares_by_position(more):
    """Two equal shares are one for all; a second share of 0 yields 1 + a."""
    inputs = {**SMALL, "concurrency": 4, "num_requests": 200} | (more or {"draft_tokens": 2})
    even = simulate(**inputs, acceptance="0.6,0.6").to_json()
    one = simulate(**inputs | ({"draft_tokens": 2} if "draft_tree" not in inputs else {}), acceptance=0.6).to_json()
    assert even["mean_tpot_ms"] == one["mean_tpot_ms"]
    counters = simulate(**inputs, acceptance="0.6,0").simulated.counters
    steps = counters["drafted_tokens"] / 2
    assert counters["accepted_tokens"] / steps == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"draft_tokens": 3, "acceptance": "0.8,0.5"}, "write 3"),
        ({"draft_tokens": 1, "acceptance": "0.8/0.1"}, "shares by rank"),
        ({"draft_tokens": 2, "acceptance": "0.8,1.5"}, "shares from 0 to 1"),
        ({"draft_tokens": 2, "acceptance": "0.8,x"}, "is no file"),
        ({"draft_tokens": 2, "acceptance": [0.8, 0.5], "acceptance_by_position": "0.8,0.5"}, "exclude each other"),
        ({"draft_tokens": 2, "acceptance": 0.8, "acceptance_by_position": "0.8,0.5"}, "exclude each other"),
        ({"acceptance": "0.8,0.5"}, "no head guesses"),
    ],
)
def test_wrong_shares_of_a_row_are_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        simulate(**SMALL, concurrency=4, num_requests=8, **settings)
