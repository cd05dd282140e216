"""Words beside a change: its state, its verdict, the metric that it is judged by, and what counts as no change."""

import pytest

from orrery.scenario.levers import get_lever
from orrery.scenario.what_if import what_if
from orrery.scenario.what_if.difference import Difference, differences, is_same
from orrery.scenario.what_if.metrics import BY_NAME as BY_METRIC
from orrery.scenario.what_if.metrics import default_metric
from orrery.scenario.what_if.result import WhatIf
from orrery.scenario.what_if.side import Side

SERVING = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "concurrency": 16}


@pytest.mark.parametrize(
    ("name", "settings", "state"),
    [
        ("fp8-weights", {"weights": "fp8"}, "in use"),
        ("fp8-weights", {}, "on"),
        ("chunked-prefill", {}, "default"),
        ("expert-affinity", {}, "no effect"),
    ],
)
def test_the_state_says_what_without_is(name, settings, state):
    (found,) = what_if(name, break_even=(), **SERVING, **settings).results
    assert (found.state if found.outcome == "changes" else found.outcome) == state
    if name == "expert-affinity":
        assert found.because == "no effect on this deployment: the model has no experts."


def test_experts_that_no_rank_shares_are_said():
    mixture = SERVING | {"model": "mixtral-8x7b", "tp": 4}
    (found,) = what_if("redundant-experts", **mixture).results
    assert found.because == "no effect on this deployment: ep is 1: no token leaves its rank for an expert."
    (found,) = what_if("expert-affinity", **mixture, ep=4).results
    assert found.because == "it needs --expert-loads; write yours."


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"rate": 2.0}, "latency"),
        ({"users": 20}, "latency"),
        ({"concurrency": 8}, "throughput"),
        ({"batch": 8}, "throughput"),
        ({"rate": 2.0, "max_devices": 8}, "cost"),
        ({"global_batch": 64}, "step_time"),
    ],
)
def test_the_default_metric_is_the_one_that_the_traffic_leaves_open(settings, word):
    assert default_metric(settings) == word


def test_a_change_that_rounds_to_nothing_is_none():
    metric = BY_METRIC["tpot_s"]
    lever = get_lever("fp8-weights")
    for figure, verdict in ((1.0004, "no change"), (1.001, "hurts"), (0.999, "helps")):
        sides = (Side(question="estimate", settings={}, figures={"tpot_s": value}) for value in (1.0, figure))
        without, having = sides
        result = WhatIf(
            lever=lever, outcome="changes", because="", command="", metric=metric, without=without, having=having
        )
        assert result.verdict == verdict


@pytest.mark.parametrize(("low", "high", "verdict"), [(-0.3, -0.01, "likely helps"), (-0.3, 0.1, "may help")])
def test_an_interval_that_holds_no_change_leaves_doubt(low, high, verdict):
    sides = [Side(question="estimate", settings={}, figures={"tpot_s": value}) for value in (1.0, 0.9)]
    result = WhatIf(
        lever=get_lever("fp8-weights"),
        outcome="changes",
        because="",
        command="",
        metric=BY_METRIC["tpot_s"],
        without=sides[0],
        having=sides[1],
        difference={"tpot_s": Difference(frac=-0.1, low_80=low, high_80=high)},
    )
    assert result.verdict == verdict


def test_a_sum_in_another_order_is_no_effect():
    one, other = (Side(question="estimate", settings={}, figures={"tpot_s": x}) for x in (1.0, 1.0 + 1e-12))
    assert is_same(one, other)
    assert differences(one, other)["tpot_s"].frac == 0.0
    assert not is_same(one, Side(question="estimate", settings={}, figures={"tpot_s": 1.0 + 1e-6}))
    assert not is_same(one, Side(question="estimate", settings={}, figures={}))
