"""Autoscalers by hand: what each recommends after samples that are written down."""

import math

import numpy as np
import pytest

from orrery.base.errors import OrreryError
from orrery.catalog.autoscalers import autoscaler_facts, facts_of
from orrery.fleet.service.registry import AUTOSCALERS, scaler_of
from orrery.fleet.service.signals import Sample, Signals


def signals(capacity_requests_per_s=10.0, ttft=(), tpot=(), past=None):
    return Signals(
        replicas_min=0,
        replicas_max=100,
        cold_start_s=60.0,
        capacity_requests_per_s=capacity_requests_per_s,
        limits_s={"ttft": 1.0, "tpot": 0.05},
        recent=lambda since_s: (np.array(ttft, dtype=float), np.array(tpot, dtype=float)),
        past=past,
    )


def sample(now_s, serving=4, starting=0, waiting=0, running=0, arrivals=0, since_s=15.0, busy=0.0):
    return Sample(
        now_s=now_s,
        serving=serving,
        starting=starting,
        waiting=waiting,
        running=running,
        arrivals=arrivals,
        since_s=since_s,
        busy_frac=busy,
        kv_frac=0.0,
    )


def ask(name, history, knobs=None, **more):
    """What an autoscaler says to each sample in turn."""
    scaler, seen, said = scaler_of(name, {k: str(v) for k, v in (knobs or {}).items()}), signals(**more), []
    for one in history:
        seen.add(one)
        said.append(scaler.rule(seen, scaler.knobs))
    return said


def test_hpa_is_the_ratio_within_a_tolerance():
    """4 replicas, target 10 each: 43 in flight is within 10 %, 50 is not: ceil(4 x 50/40) = 5."""
    assert ask("hpa", [sample(15, running=43)], {"target": 10}) == [4]
    assert ask("hpa", [sample(15, running=50)], {"target": 10}) == [5]


def test_hpa_adds_four_or_doubles_at_a_sync():
    assert ask("hpa", [sample(15, serving=1, running=1000)], {"target": 10}) == [5]
    assert ask("hpa", [sample(15, serving=8, running=1000)], {"target": 10}) == [16]


def test_hpa_takes_the_highest_of_five_minutes_before_it_removes():
    history = [sample(15.0 * k, running=40 if k <= 1 else 4) for k in range(1, 24)]
    said = ask("hpa", history, {"target": 10})
    assert said[: 1 + 20] == [4] * 21  # the 4 of second 15 counts up to second 315
    assert said[21] == 1


def test_keda_wakes_the_first_and_cools_down():
    idle = [sample(30.0 * k, serving=0) for k in range(1, 3)]
    assert ask("keda-queue", [*idle, sample(90, serving=0, waiting=11)]) == [0, 0, 3]
    after = [sample(30, serving=1, running=1), *(sample(30.0 * k, serving=1) for k in range(2, 13))]
    said = ask("keda-queue", after)
    assert said[:10] == [1] * 10  # 300 s after second 30
    assert said[10] == 0


def test_knative_averages_and_panics():
    """Target 100 x 0.7: 140 in flight on 2 is 2; 300 for six seconds is ceil(300/70) = 5 >= 2 x 2: panic."""
    calm = [sample(2.0 * k, serving=2, running=140, since_s=2) for k in range(1, 31)]
    assert ask("knative-concurrency", calm)[-1] == 2
    burst = [sample(60.0 + 2.0 * k, serving=2, running=300, since_s=2) for k in range(1, 4)]
    assert ask("knative-concurrency", [*calm, *burst])[-1] == 5
    over = [sample(66.0 + 2.0 * k, serving=5, since_s=2) for k in range(1, 30)]
    assert ask("knative-concurrency", [*calm, *burst, *over])[-1] == 5  # no removal for 60 s


def test_knative_goes_to_zero_after_its_grace():
    said = ask("knative-concurrency", [sample(2.0 * k, serving=1, running=int(k == 1)) for k in range(1, 60)])
    assert said[0] == 1
    assert said[-1] == 0
    assert said.index(0) == 45 - 1  # second 2 is in the window up to second 60, and 30 s later it is over


def test_the_planner_is_the_rate_over_capacity_corrected():
    """45 a second, 10 a replica, four fifths full: ceil(5.6) = 6; TTFT of 1.5 s against 1 s: ceil(8.4) = 9."""
    history = [sample(60, arrivals=45 * 60, since_s=60.0)]
    assert ask("slo-planner", history) == [6]
    assert ask("slo-planner", history, ttft=[1.5] * 10) == [9]
    assert ask("slo-planner", history, tpot=[0.5] * 10) == [12]  # at most twice
    assert ask("slo-planner", history, capacity_requests_per_s=0.0) == [4]


def test_the_planner_looks_back_over_its_period():
    """Minutes of 10/s and 20/s: 15/s over two of them need two replicas of 8/s, 20/s over one need three."""
    history = [sample(60, arrivals=600, since_s=60.0), sample(120, arrivals=1200, since_s=60.0)]
    assert ask("slo-planner", history, {"period_s": 120.0})[-1] == 2
    assert ask("slo-planner", history)[-1] == 3
    assert ask("slo-planner", history, {"period_s": 1.0})[-1] == 3  # a minute at least


def test_holt_by_hand():
    """Rates 10, 20: level 15, slope 0.5 a minute; 120 s ahead 16, so ceil(16/8) = 2."""
    history = [sample(60, arrivals=600, since_s=60.0), sample(120, arrivals=1200, since_s=60.0)]
    assert ask("predictive", history) == [math.ceil(10 / 8), 2]


def test_a_season_ago_counts_where_it_was_seen():
    past = (np.array([-86_400.0, 0.0]), np.array([40.0, 40.0]))
    history = [sample(60, arrivals=60, since_s=60.0)]
    assert ask("predictive", history, {"season_s": 86_400}, past=past) == [5]
    assert ask("predictive", history, {"season_s": 86_400}) == [1]


def test_defaults_are_what_the_projects_document():
    """Every fact is the default of a knob, and only the spot notice is no knob's."""
    seen = {"spot_notice_s"}
    for name in AUTOSCALERS.techniques:
        knobs, start = scaler_of(name).knobs, name.replace("-", "_") + "_"
        for fact in facts_of(name):
            knob = fact.name.removeprefix("num_").removeprefix(start)
            assert getattr(knobs, knob) == fact.value, fact.name
            seen.add(fact.name)
    assert seen == set(autoscaler_facts())


def test_unknown_names_and_knobs_are_refused():
    with pytest.raises(OrreryError, match="hpa"):
        scaler_of("hpaa")
    with pytest.raises(OrreryError, match="tolerance_frac"):
        scaler_of("hpa", {"tolerance": "0.2"})
    with pytest.raises(OrreryError, match="write one of in-flight"):
        scaler_of("hpa", {"metric": "cpu"})
    assert set(AUTOSCALERS.techniques) >= {"hpa", "keda-queue", "knative-concurrency", "slo-planner", "predictive"}
