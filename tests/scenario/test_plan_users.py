"""People who think between requests, in plans: one search, each plan at the rate of its own replies."""

import numpy as np
import pytest

from orrery.scenario import plan as module
from orrery.scenario.plan import searched_for
from orrery.scenario.plan_simulated import plan_simulated
from orrery.scenario.schema import merged
from orrery.scenario.users import users_requests
from orrery.serving.synthesis import Length

ASKED = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "max_devices": 2,
    "input_tokens": 1000,
    "output_tokens": 200,
    "users": 300,
    "think_s": 20.0,
    "slo": ("tpot:40ms",),
}


def test_every_plan_has_all_people_waiting_or_thinking(monkeypatch):
    """N = requests in flight + rate x pause, plan by plan: a slower one is sent fewer requests."""
    calls = []
    monkeypatch.setattr(module, "search", lambda *a, real=module.search: calls.append(a) or real(*a))
    found = searched_for(merged(None, ASKED))
    assert len(calls) == 1
    plans = found.found.plans
    assert plans
    for one in plans:
        assert one.concurrency * one.replicas + 20.0 * one.requests_per_s == pytest.approx(300.0)
        assert one.requests_per_s < 300 / 20
    assert len({round(one.requests_per_s, 6) for one in plans}) > 1
    assert found.goal.traffic.request_rate_per_s == plans[0].requests_per_s


def test_replicas_hold_all_people():
    """Of 20,000 people a replica takes as many as wait and think at the most that its objectives allow."""
    found = searched_for(merged(None, {**ASKED, "users": 20_000, "max_devices": 64}))
    best = found.found.plans[0]
    assert best.replicas > 1
    room = best.max_concurrency + 20.0 * best.highest_requests_per_s / best.replicas
    assert (best.replicas - 1) * room < 20_000 <= best.replicas * room * (1 + 1e-6)


def test_plans_are_simulated_on_the_people():
    found = plan_simulated(merged(None, {**ASKED, "users": 100, "num_requests": 4000}), count=1)
    (one,) = found.simulated
    assert one.is_met
    assert one.answer.simulated.requests.count == 4000
    assert one.answer.summary.requests_per_s == pytest.approx(one.operation.requests_per_s, rel=0.06)


def test_people_stop_one_by_one():
    """The last requests come no closer together than others: each person's last pause is behind them."""
    scenario = merged(None, {**ASKED, "users": 400})
    sent = users_requests(scenario, 2000, (Length(mean_tokens=1000.0), Length(mean_tokens=200.0)))
    starts = np.flatnonzero(sent.after < 0)
    totals = np.add.reduceat(sent.arrive_s, starts)
    assert starts.size == 400
    assert np.histogram(totals, bins=np.arange(0.0, 130.0, 5.0))[0].max() < 100, "nobody waits for the others to end"
    assert totals.max() < 6 * 20.0
