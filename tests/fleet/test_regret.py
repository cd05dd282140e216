"""Autoscalers against the cheapest schedule that knows the future, and tenants of different priority."""

from functools import cache

import numpy as np
import pytest

from orrery.fleet.service.registry import AUTOSCALERS
from orrery.scenario.fleet.ask import simulate_fleet

SERVED = {"model": "llama-3.1-8b", "device": "l4", "input_tokens": 500, "output_tokens": 60, "change": False}
SEASON_S = 7200
DAY = {
    **SERVED,
    "rate": 4.0,
    "days": 2 * SEASON_S / 86_400,
    "rate_curve": ",".join(["0.2", "1.8"] * 12),  # a quiet hour and a busy one, twice
    "replicas_min": 1,
    "replicas_max": 6,
    "cold_start_s": 300,
    "slo": ["ttft:5000"],
}
KNOBS = {"hpa": ["target=8"], "predictive": [f"season_s={SEASON_S}"]}
REACTIVE = sorted(set(AUTOSCALERS.words) - {"predictive"})


@cache
def day(scaler):
    return simulate_fleet(**DAY, autoscaler=scaler, autoscaler_knob=KNOBS.get(scaler, []))


def second(answer):
    """Requests of the second season, by which the first has been seen."""
    return answer.run.arrive_s >= SEASON_S


@pytest.mark.parametrize("scaler", AUTOSCALERS.words)
def test_one_replica_that_is_needed_all_the_time_leaves_nothing_to_regret(scaler):
    """Paid: one replica to the end; the cheapest schedule: the same."""
    one = {"rate": 2.0, "days": 0.01, "replicas_min": 1, "replicas_max": 1, "cold_start_s": 60}
    found = simulate_fleet(**SERVED, **one, autoscaler=scaler)
    assert found.regret.regret_frac == pytest.approx(0.0, abs=1e-12)
    assert found.regret.paid_s == pytest.approx(found.run.end_s)


def regions(**shares):
    """Two regions with a pool of no to two replicas each, and an origin beside each with its part of the requests."""
    return {
        "region": [{"name": "eu", "place": "swedencentral"}, {"name": "us", "place": "eastus"}],
        "origin": [
            {"name": name, "place": place, "share": share}
            for (name, share), place in zip(shares.items(), ("swedencentral", "eastus"), strict=True)
        ],
        "pool": [
            {"name": n, "region": n, "replicas_min": 0, "replicas_max": 2, "cold_start_s": 60} for n in ("eu", "us")
        ],
        "autoscaler": "keda-queue",
        "days": 0.01,
    }


def test_each_region_has_a_cheapest_schedule_of_its_own_for_what_was_sent_there():
    """One replica carries all requests, and half of them too: one to the end in each region that has any."""
    for shares, needed in (({"a": 0.5, "b": 0.5}, 2), ({"a": 1.0, "b": 1e-9}, 1)):
        found = simulate_fleet(**SERVED, **regions(**shares), rate=2.0)
        assert found.run.setup.capacities(0)[0] > 2.0
        assert found.regret.cheapest_s == pytest.approx(needed * found.run.end_s, rel=0.08)
        assert found.regret.paid_s == pytest.approx(sum(found.run.paid_s), rel=0.05)
        assert found.regret.regret_frac > -0.2


def test_each_phase_has_a_cheapest_schedule_of_its_own():
    """One replica carries either phase all the time. Two for prompts that always run are paid for by the schedule too;
    two that an autoscaler never gives back are twice what is needed."""
    apart = {"rate": 2.0, "days": 0.01, "cold_start_s": 60, "replicas_max": 1, "prefill_replicas_max": 2}
    fixed = simulate_fleet(**SERVED, **apart, prefill_replicas_min=2).regret
    end_s = fixed.phases["decode"].paid_s
    assert fixed.phases["prefill"].cheapest_s == pytest.approx(2.0 * end_s)
    assert (fixed.paid_s, fixed.regret_frac) == (pytest.approx(3.0 * end_s), pytest.approx(0.0, abs=1e-12))
    knobs = ["metric=in-flight", "target=0.001"]
    wide = simulate_fleet(**SERVED, **apart, prefill_autoscaler="hpa", prefill_autoscaler_knob=knobs).regret
    assert wide.phases["prefill"].cheapest_s == pytest.approx(wide.phases["decode"].paid_s, rel=0.01)
    assert 0.8 < wide.phases["prefill"].regret_frac < 1.0
    assert wide.phases["decode"].regret_frac == pytest.approx(0.0, abs=1e-12)
    assert wide.to_json()["phases"]["prefill"]["paid_s"] == wide.phases["prefill"].paid_s


def check_regret(scaler):
    """More was paid for than by the cheapest schedule, or requests were late that it would have served in time."""
    found = day(scaler)
    assert found.regret.regret_frac >= 0.0 or found.attained_frac < 1.0
    assert found.regret.paid_s == pytest.approx(found.run.paid_s[0])


def check_forecast(scaler):
    """Whoever has seen the season is ready for it; whoever waits for the load is a cold start late, twice."""
    seen, other = day("predictive"), day(scaler)
    assert seen.run.within[second(seen)].all()
    assert other.run.hurt["cold-start"][second(other)].sum() > 1000
    assert seen.cost_usd < other.cost_usd


def test_a_forecast_that_has_seen_the_day_beats_a_queue_length():
    for scaler in ("predictive", "keda-queue"):
        check_regret(scaler)
    check_forecast("keda-queue")
    first = ~second(day("predictive"))
    assert day("predictive").run.hurt["cold-start"][first].sum() > 1000  # what it had not seen came as a surprise


@pytest.mark.slow
@pytest.mark.parametrize("scaler", REACTIVE)
def test_a_forecast_that_has_seen_the_day_beats_every_reactive_one(scaler):
    check_regret(scaler)
    check_forecast(scaler)


def waits_s(queue, *priorities):
    """Mean waits of two tenants on one busy replica."""
    tenants = [{"name": n, "share": s, "priority": p} for n, s, p in zip("ab", (0.3, 0.7), priorities, strict=True)]
    busy = {"rate": 5.0, "days": 0.003, "replicas": 1, "max_num_seqs": 8}
    run = simulate_fleet(**SERVED, **busy, queue=queue, tenant=tenants).run
    return [float(np.nanmean(run.waited_s[run.requests.client == tenant])) for tenant in (0, 1)]


def test_priority_shortens_the_waits_of_the_higher_and_lengthens_those_of_the_lower():
    in_turn, first, last = waits_s("fcfs", 0, 0), waits_s("priority", 0, 5), waits_s("priority", 5, 0)
    assert waits_s("priority", 3, 3) == in_turn
    assert first[0] < 0.1 * in_turn[0]
    assert first[1] > in_turn[1]
    assert last[1] < in_turn[1]
    assert last[0] > in_turn[0]
