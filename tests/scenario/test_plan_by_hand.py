"""``orrery plan``: goals, budgets, ranks and notes from a few settings, and what a rejected plan says."""

from math import inf
from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.planner.goal import Goal, Objectives
from orrery.scenario import plan as page
from orrery.scenario import plan_answer, plan_simulated
from orrery.scenario.plan_answer import PlanAnswer
from orrery.scenario.schema import read_scenario
from orrery.serving.workload import Traffic

LENGTHS = {"input_tokens": 10, "output_tokens": 5}


def on(device):
    return SimpleNamespace(deployment=SimpleNamespace(cluster=SimpleNamespace(device=SimpleNamespace(name=device))))


def test_the_best_plans_and_the_best_of_each_device_are_worth_their_detail():
    found = [on(name) for name in ("a", "a", "b", "a", "c", "b")]
    assert page.worth_detail(found, 2) == (1, 2, 3, 5)
    assert page.worth_detail(found, 0) == (1, 3, 5)
    assert page.worth_detail(found, 99) == (1, 2, 3, 4, 5, 6)
    assert page.worth_detail([], 3) == ()


@pytest.mark.parametrize(
    ("settings", "best", "most"),
    [
        ({"rate": 2}, "cost", page.MAX_DEVICES),
        ({"rate": 2, "objective": "throughput"}, "throughput", page.MAX_DEVICES),
        ({"rate": 2, "objective": "energy", "devices": 3}, "energy", 3),
        ({"rate": 2, "objective": "latency", "devices": 3, "max_devices": 5}, "latency", 5),
        ({}, "throughput", page.MAX_DEVICES),
    ],
)
def test_what_a_plan_is_best_at(settings, best, most):
    goal, _ = page.goal_of(read_scenario(LENGTHS | settings))
    assert (goal.best, goal.max_devices, goal.max_usd_per_hour) == (best, most, inf)


def test_goals_that_lack_a_load_and_those_of_a_purse():
    with pytest.raises(ScenarioError, match="latency is of a load"):
        page.goal_of(read_scenario(LENGTHS | {"objective": "latency"}))
    assert page.goal_of(read_scenario(LENGTHS | {"rate": 1, "max_usd_per_hour": 7}))[0].max_usd_per_hour == 7


def test_of_several_percentiles_the_widest_limit_counts():
    limits = page._objectives(read_scenario({"slo": ["p50_ttft:100", "p99_ttft:900", "tpot:50"]}), True)
    assert (limits.ttft_s, limits.tpot_s) == (0.9, 0.05)
    with pytest.raises(ScenarioError, match="write ttft:900 for the mean"):
        page._objectives(read_scenario({"slo": ["p99_ttft:900"]}), False)


def goal(max_devices=8, rate=2.0, usd=inf, objectives=None):
    traffic = Traffic(input_tokens=10.0, output_tokens=5.0, request_rate_per_s=rate)
    return Goal(
        objectives=objectives or Objectives(),
        traffic=traffic,
        max_devices=max_devices,
        best="cost",
        max_usd_per_hour=usd,
    )


@pytest.mark.parametrize(
    ("settings", "simulated", "starts"),
    [
        ({"max_devices": 8}, False, []),
        ({"devices": 8}, False, []),
        ({}, False, ["max_devices: 8 (one usual server)"]),
        ({"devices": 8, "batch": 1}, False, ["batch: not used"]),
        ({"devices": 8, "concurrency": 2}, False, ["concurrency: not used"]),
        ({"devices": 8, "power_budget_w": 9000}, True, ["power_budget_w: not used"]),
        ({"devices": 8, "power_budget_w": 9000}, False, []),
        ({"devices": 8, "spare_frac": 0.1}, False, ["spare_frac: not used; add --mix"]),
        ({"devices": 8, "prefill_device": "b200"}, False, ["prefill_device: not used; add --disaggregate"]),
        ({"devices": 8, "attainment": 0.9}, False, ["attainment: not used; add --simulate"]),
        ({"devices": 8, "attainment": 0.9, "num_requests": 9}, True, []),
        ({"devices": 8, "buy_usd": 9000}, True, ["ways to pay"]),
        ({"devices": 8, "buy_usd": 9000}, False, []),
    ],
)
def test_what_a_plan_leaves_out_is_said(settings, simulated, starts):
    notes = page._scope_notes(read_scenario(settings), goal(), simulated)
    assert [note[: len(start)] for note, start in zip(notes, starts, strict=True)] == starts


def test_plans_without_a_rate_and_with_means():
    settings = read_scenario({"devices": 8})
    assert page._scope_notes(settings, goal(rate=0.0), False)[0].startswith("no rate is given")
    limited = goal(objectives=Objectives(ttft_s=1.0))
    assert page._scope_notes(settings, limited, False)[0].startswith("objectives are held against mean latencies")
    assert page._scope_notes(settings, limited, True) == ()


def test_a_search_of_nothing_names_the_degrees_that_are_fixed():
    text = "No layout of at most 8 devices has {}; raise max_devices, or free one."
    assert page._empty(read_scenario({"tp": 16, "ep": 2}), goal()) == text.format("tp = 16, ep = 2")
    assert page._empty(read_scenario({}), goal()) == text.format("these degrees")


# --- what a plan's answer says


def answer(rate):
    return SimpleNamespace(goal=goal(rate=rate))


def test_headroom_is_what_a_plan_sustains_beyond_the_rate():
    plan = SimpleNamespace(operation=SimpleNamespace(highest_requests_per_s=5.0))
    assert PlanAnswer.headroom_frac(answer(2.0), plan) == 1.5
    assert PlanAnswer.headroom_frac(answer(0.0), plan) is None


def missed(reason="memory", need=2.0, have=1.0, excess_ratio=2.0, unit="s", change="Do."):
    lacks = Infeasible(what="w", need=need, have=have, unit=unit, smallest_change=change)
    return SimpleNamespace(reason=reason, infeasible=lacks, excess_ratio=excess_ratio)


@pytest.mark.parametrize(
    ("need", "have", "unit", "says"),
    [
        (2.0, 1.0, "s", "needs 2 s, has 1 s. Do."),
        (1.231, 1.234, "s", "needs 1.231 s, has 1.234 s. Do."),  # four digits tell them apart
        (1.2341, 1.2344, "s", "needs 1.2341 s, has 1.2344 s. Do."),
        (1.23451, 1.23453, "s", "needs 1.2345 s, has 1.2345 s. Do."),  # five do not, and no more are written
        (9000.0, 8999.0, "tokens", "needs 9,000 tokens, has 8,999 tokens. Do."),
        (12.0, 8.0, "devices", "needs 12 devices, has 8 devices. Do."),
    ],
)
def test_a_shortfall_has_enough_digits_to_be_seen(need, have, unit, says):
    assert plan_answer.shortfall(missed(need=need, have=have, unit=unit)) == f"w: {says}"


def test_the_nearest_miss_is_of_devices_then_of_speed_then_of_size():
    size, slow, far, few = missed("memory", excess_ratio=1.1), missed("objective"), missed("devices"), missed("devices")
    far.excess_ratio = 9.0
    assert plan_answer.closest([size, slow, far, few]) is few
    assert plan_answer.closest([size, slow]) is slow
    assert plan_answer.closest([]) is None
    assert plan_answer.nothing_works([slow]) is slow.infeasible
    assert plan_answer.nothing_works([]) is None


def test_misses_of_each_kind_come_in_turn_and_each_sentence_once():
    a, same, b, c = missed(), missed(), missed(change="Other."), missed("devices", change="Third.")
    assert plan_answer.nearest_misses((a, same, b, c), 9) == [a, c, b]
    assert plan_answer.nearest_misses((a, same, b, c), 2) == [a, c]


# --- replicas until the objectives hold


def enough(monkeypatch, holds_from, replicas=2, most=40, rate=1.0):
    """The replicas that are found, and those that were simulated."""
    tried = []

    def simulated(scenario, goal, operation, num_added):
        tried.append(operation)
        return SimpleNamespace(is_met=operation >= holds_from, replicas=operation)

    class Found(int):
        candidate = SimpleNamespace(option=None)
        deployment = SimpleNamespace(layout=SimpleNamespace(num_devices=1))

        @property
        def replicas(self):
            return int(self)

    monkeypatch.setattr(plan_simulated, "_simulated", simulated)
    monkeypatch.setattr(plan_simulated, "with_replicas", lambda goal, operation, count: count)
    monkeypatch.setattr(plan_simulated, "weight_of", lambda option, devices: 1)
    of = SimpleNamespace(
        budget=SimpleNamespace(most=lambda weight: most), traffic=SimpleNamespace(request_rate_per_s=rate)
    )
    return plan_simulated._enough(None, of, Found(replicas)), tried


@pytest.mark.parametrize("holds_from", [3, 4, 5, 7, 12, 39, 40])
def test_the_fewest_replicas_that_hold_are_found(monkeypatch, holds_from):
    found, tried = enough(monkeypatch, holds_from)
    assert (found.is_met, found.replicas) == (True, holds_from)
    assert len(tried) == len(set(tried))
    assert max(tried) <= 40


def test_what_holds_at_once_or_never_stays_as_it_is(monkeypatch):
    assert enough(monkeypatch, 2)[1] == [2]
    found, tried = enough(monkeypatch, 41)
    assert (found.is_met, found.replicas, max(tried)) == (False, 2, 40)
    assert enough(monkeypatch, 3, most=2)[1] == [2]
    assert enough(monkeypatch, 3, rate=0.0)[1] == [2]
