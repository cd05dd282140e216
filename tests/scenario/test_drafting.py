"""``draft`` in estimates, plans and simulations."""

import pytest

from orrery.base.errors import ScenarioError
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
