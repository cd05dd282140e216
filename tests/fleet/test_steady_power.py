"""Steady hours under limits on power: cycles of rules by hand, and the same hours simulated."""

import numpy as np
import pytest

from orrery.fleet.power import POWER_CAPS
from orrery.fleet.power.capping import Clocks
from orrery.fleet.service.power_places import PowerPlaces
from orrery.fleet.service.power_readings import PowerCap, PowerLimit
from orrery.fleet.service.steady_power import ReplicaState, capped_hour
from orrery.scenario.fleet.ask import simulate_fleet

EVERYONE = POWER_CAPS.get("everyone")
AT = {1.0: 100.0, 0.5: 60.0}
"""Watts of a device by its clock; 20 of them idle. TPOT is 1 over the clock."""


def state(clock):
    return ReplicaState(ttft_s=2.0 / clock, tpot_s=1.0 / clock, power_w=AT[clock], used_frac=0.5)


def places(*is_behind, is_low=(True, False), is_owned=(False, False)):
    return PowerPlaces(
        is_low=np.array(is_low),
        is_behind=np.array(is_behind),
        rated_w=np.full(2, 120.0),
        standing_w=np.full(2, 30.0),  # 20 idle, and 10 of the machine
        is_owned=np.array(is_owned),
    )


def everyone(limit_w, **knobs):
    chosen = EVERYONE.knobs(**{"clock_ratio": 0.5, "threshold_frac": 0.8, **knobs})
    return PowerLimit(limit_w=limit_w, rule=lambda reading: EVERYONE.rule(reading, chosen))


def hour(limit, where, running=(1.0, 1.0), delay_s=40.0):
    cap = PowerCap(limits=limit if isinstance(limit, tuple) else (limit,), reading_s=2.0, delay_s=delay_s)
    return capped_hour(cap, where, np.array(running), state, np.full(2, 20.0))


def test_far_below_its_limit_nothing_is_lowered():
    """Two replicas draw 2 x (100 + 10)."""
    found = hour(everyone(1000.0), places((True, True)))
    assert (found.drawn_w, found.throttled_frac, found.clock_frac) == ((220.0,), (0.0,), 1.0)
    assert found.replica == state(1.0)


def test_a_threshold_between_two_draws_takes_both_in_turn():
    """Full: 220 W, above 0.8 of 250; lowered: 140 W, below 0.75 of it. Each order takes 20 readings to come into force
    and is seen at the next, so both last 21 readings: half of the time each."""
    found = hour(everyone(250.0), places((True, True)))
    assert found.throttled_frac == (0.5,)
    assert found.drawn_w == (180.0,)
    assert found.clock_frac == 0.75
    assert found.replica == ReplicaState(ttft_s=3.0, tpot_s=1.5, power_w=80.0, used_frac=0.5)
    assert hour(everyone(250.0), places((True, True)), delay_s=0.0).throttled_frac == (0.5,)


def test_a_rule_that_holds_is_where_it_settles():
    """Lowered, 140 W are above 0.75 of 180: the clock stays low, whatever the first readings were."""
    found = hour(everyone(180.0), places((True, True)))
    assert (found.throttled_frac, found.drawn_w, found.clock_frac) == ((1.0,), (140.0,), 0.5)


def test_a_limit_slows_what_stands_behind_it_alone_and_the_lowest_clock_counts():
    """The first replica's rack lowers it; the row above only meters: 70 + 110 W."""
    row, rack = PowerLimit(), everyone(80.0)
    found = hour((row, rack), places((True, True), (True, False)))
    assert found.drawn_w == (180.0, 70.0)
    assert found.throttled_frac == (0.0, 1.0)
    two = places((True, True)).clocks([Clocks(low_ratio=0.5, high_ratio=0.9)])
    assert two.tolist() == [0.5, 0.9]
    both = places((True, True), (False, True)).clocks([Clocks(low_ratio=0.5, high_ratio=0.9), Clocks(high_ratio=0.7)])
    assert both.tolist() == [0.5, 0.7]


def test_what_does_not_run_draws_nothing_unless_it_is_owned():
    """Half of the second replica runs: 110 + 55 W; of an owned one the other half stands with 15 W more."""
    limit, running = everyone(1000.0), (1.0, 0.5)
    assert hour(limit, places((True, True)), running).drawn_w == (165.0,)
    assert hour(limit, places((True, True), is_owned=(False, True)), running).drawn_w == (180.0,)
    none = hour(limit, places((True, True)), (0.0, 0.0))
    assert (none.drawn_w, none.replica.power_w) == ((0.0,), 0.0)


DAY = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "rate": 40,
    "days": 0.01,
    "replicas": 4,
    "seed": 1,
    "change": False,
}


def test_steady_hours_under_a_cap_are_near_the_simulated_ones():
    """Clocks lowered most of the time; only the first 40 s are not."""
    capped = {**DAY, "power_budget_w": 4300, "power_cap": "everyone"}
    answer, free = simulate_fleet(**capped), simulate_fleet(**DAY, steady=True)
    steady = simulate_fleet(**capped, steady=True)
    assert abs(answer.steady["energy_frac"]) < 0.02
    assert abs(answer.steady["mean_tpot_frac"]) < 0.05
    assert steady.mean("tpot_s") > 1.02 * free.mean("tpot_s")
    assert steady.energy_j < 0.95 * free.energy_j
    plain = steady.to_json()["power"]["limits"][0]
    assert plain["mean_w"] == pytest.approx(answer.to_json()["power"]["mean_w"], rel=0.05)
    assert plain["throttled_s"] == pytest.approx(864.0, rel=0.05)


def test_a_limit_that_is_never_near_changes_no_steady_hour():
    free = simulate_fleet(**DAY, steady=True)
    ample = simulate_fleet(**DAY, steady=True, power_budget_w=1e6)
    assert [h.power_w for h in ample.hours] == [h.power_w for h in free.hours]
    assert ample.mean("ttft_s") == free.mean("ttft_s")
    assert "power" not in free.to_json()


def test_rows_of_regions_are_limits_of_their_own():
    """The row of one region lowers its clocks and not the other's."""
    rows = [{"name": "r1", "limit_w": 1200, "power_cap": "everyone"}, {"name": "r2", "limit_w": 1e6}]
    pools = [{"name": n, "region": n, "racks": r, "replicas_min": 2} for n, r in (("eu", "r1"), ("us", "r2"))]
    regions = [{"name": "eu", "place": "swedencentral"}, {"name": "us", "place": "eastus"}]
    origins = [{"name": "a", "place": "swedencentral", "share": 0.5}, {"name": "b", "place": "eastus", "share": 0.5}]
    own = {k: v for k, v in DAY.items() if k != "replicas"} | {"region": regions, "origin": origins, "pool": pools}
    found = simulate_fleet(**own, row=rows, steady=True).to_json()
    limits = {one["name"]: one for one in found["power"]["limits"]}
    clocks = {r["name"]: r["hours"][0]["clock_frac"] for r in found["regions"]}
    assert (clocks["us"], limits["r2"]["throttled_s"]) == (1.0, 0.0)
    assert clocks["eu"] < 1.0
    assert limits["fleet"]["mean_w"] == pytest.approx(limits["r1"]["mean_w"] + limits["r2"]["mean_w"])
