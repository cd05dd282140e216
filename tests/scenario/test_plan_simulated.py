"""Plans that are simulated: percentiles, replicas added where they are needed, and the plain plan left as it was."""

import json

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import plan
from orrery.scenario.objectives import percentile_limits, read_objectives, request_limits_s
from orrery.scenario.plan_simulated import plan_simulated
from orrery.scenario.simulate import simulate

GOAL = {"model": "llama-3.1-8b", "device": "h100-sxm", "max_devices": 4, "input_tokens": 800, "output_tokens": 80}
LAYOUT = {"tp": 1, "weights": "bf16", "kv": "bf16", "num_requests": 800}


def test_objectives_may_be_percentiles():
    texts = ["P99_ttft:1000 ttft:500", "tpot:40", "p99_ttft:900", "p99.9_e2el:5e3"]
    assert [o.written for o in read_objectives(texts)] == ["ttft:500", "tpot:40", "p99_ttft:900", "p99.9_e2el:5000"]
    assert request_limits_s(texts) == {"ttft": 0.5, "tpot": 0.04}
    assert [(p.metric, p.percent, p.limit_s) for p in percentile_limits(texts)] == [
        ("ttft", 99.0, 0.9),
        ("e2el", 99.9, 5.0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "p0_ttft:5",
        "p100_ttft:5",
        "px_ttft:5",
        "_ttft:5",
        "p99_itl:5",
        "p99ttft:5",
        "p99_ttft",
        "p99_ttft:0",
        "q99_ttft:5",
        "pnan_ttft:5",
    ],
)
def test_a_wrong_percentile_is_refused(text):
    with pytest.raises(ValueError, match="such as"):
        read_objectives([text])


def test_a_run_reports_its_percentiles():
    one = dict(GOAL, rate=4.0, num_requests=300)
    del one["max_devices"]
    found = simulate(**one, slo=["p99_ttft:1", "p99.5_e2el:60000"]).to_json()
    missed, met = found["slo_percentiles"]["p99_ttft"], found["slo_percentiles"]["p99.5_e2el"]
    assert missed["value_s"] == pytest.approx(found["p99_ttft_ms"] / 1e3)
    assert (missed["is_met"], missed["attained_frac"]) == (False, 0.0)
    assert (met["is_met"], met["attained_frac"]) == (True, 1.0)
    assert met["value_s"] == pytest.approx(found["p99.5_e2el_ms"] / 1e3)
    assert (found["slo_is_met"], found["slo_attainment"]) == (False, None)
    assert simulate(**one).to_json()["slo_is_met"] is None


def test_the_closed_form_refuses_percentiles_and_says_how():
    with pytest.raises(ScenarioError, match=r"add --simulate, or write ttft:500 for the mean"):
        plan(**GOAL, rate=2.0, slo=["p99_ttft:500"])


def test_a_plain_plan_says_nothing_of_simulations():
    found = plan(**GOAL, rate=2.0, slo=["ttft:500"]).to_json()
    assert not any("simulated" in one for one in found["plans"])


def test_plans_are_ranked_by_what_holds():
    found = plan_simulated(**GOAL, rate=8.0, slo=["p99_ttft:300", "tpot:20"])
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert "infeasible" not in plain
    verdicts = [one["simulated"]["is_met"] for one in plain["plans"]]
    assert verdicts == sorted(verdicts, reverse=True)
    best = plain["plans"][0]
    assert best["simulated"]["slo_percentiles"]["p99_ttft"]["value_s"] <= 0.3
    assert best["simulated"]["slo_attainment"] >= 0.9
    assert best["simulated"]["num_devices"] == best["num_devices"] <= 4
    assert 0.5 < best["simulated"]["mean_tpot_ms"] / 1e3 / best["tpot_s"] < 2
    held = [one["usd_per_hour"] for one in plain["plans"] if one["simulated"]["is_met"]]
    assert held == sorted(held)


def test_replicas_are_added_until_the_tail_is_in_time():
    inputs = GOAL | LAYOUT | {"rate": 36.0}
    loose, tight = plan_simulated(**inputs, slo=["ttft:2000"]), plan_simulated(**inputs, slo=["p99_ttft:100"])
    before, after = loose.answer.plans[0].operation, tight.answer.plans[0].operation
    added = tight.simulated[0].num_added
    assert added == after.replicas - before.replicas > 0
    assert tight.simulated[0].is_met
    assert after.concurrency < before.concurrency
    fewer = plan_simulated(**inputs | {"max_devices": after.replicas - 1}, slo=["p99_ttft:100"])
    assert fewer.answer.infeasible is not None
    assert fewer.answer.infeasible.have > fewer.answer.infeasible.need == 0.1


def test_without_a_rate_the_batches_are_kept_full():
    found = plan_simulated(**GOAL | LAYOUT, slo=["tpot:15"])
    (first, *_) = found.simulated
    assert first.answer.scenario.concurrency == round(first.operation.concurrency * first.operation.replicas)
    assert first.answer.summary.output_tokens_per_s == pytest.approx(first.plan.output_tokens_per_s, rel=0.25)


def test_a_trace_is_replayed_and_stated_lengths_go_before_it():
    inputs = {k: v for k, v in GOAL.items() if not k.endswith("_tokens")} | {
        "tp": 1,
        "trace": "chat",
        "slo": ["ttft:900"],
    }
    found = plan_simulated(**inputs)
    assert found.simulated[0].answer.simulated.requests.count == 2000
    stated = plan_simulated(**inputs, input_tokens=300, output_tokens=40, num_requests=200)
    requests = stated.simulated[0].answer.simulated.requests
    assert (requests.count, requests.input_tokens.max(), requests.output_tokens.max()) == (200, 300, 40)


def test_what_cannot_be_planned_is_not_simulated():
    found = plan_simulated(**GOAL | {"model": "llama-3.1-405b", "max_devices": 1}, rate=1.0)
    assert found.answer.infeasible is not None
    assert found.to_json()["plans"] == []
