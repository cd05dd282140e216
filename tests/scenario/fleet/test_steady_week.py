"""Hourly steady states of a week beside the same week simulated."""

import pytest

from orrery.scenario.fleet.ask import simulate_fleet

WEEK = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "days": 7,
    "rate": 1.0,
    "rate_curve": "diurnal",
    "weekend": 0.6,
    "input_tokens": 1000,
    "output_tokens": 200,
    "replicas_min": 1,
    "replicas_max": 3,
    "autoscaler": "hpa",
    "autoscaler_knob": ["target=1"],
    "cold_start_s": 90,
    "seed": 1,
    "change": False,
}


@pytest.mark.slow
def test_steady_hours_of_as_many_replicas_are_near_the_simulated_week():
    answer = simulate_fleet(**WEEK)
    apart = answer.steady
    print(answer.num_sent, apart)
    assert answer.run.paid.sum(axis=1).max() > answer.run.paid.sum(axis=1).min()
    assert abs(apart["cost_frac"]) < 0.01
    assert abs(apart["energy_frac"]) < 0.03
    assert abs(apart["mean_ttft_frac"]) < 0.1
    assert abs(apart["mean_tpot_frac"]) < 0.1
    assert apart["hours_overloaded"] == 0.0
