"""Caps inside a simulated service: above the peak nothing changes, below it steps stretch by the law of clocks."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.power.capping import Clocks
from orrery.fleet.power.phases import phases, span_frac
from orrery.fleet.service.power_readings import LimitReadings, PowerCap, PowerLimit, PowerReadings
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for

SERVED = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 2000, "output_tokens": 100, "seed": 3}
BUSY = {**SERVED, "rate": 40.0, "num_requests": 1200, "replicas": 4}
IDLE_W, HOST_W = 70.0, 50.0


def served(settings, cap, **more):
    scenario = read_scenario(settings)
    service, _ = service_for(scenario)
    count = scenario.replicas or 1
    terms = PoolTerms(
        name="pool", replicas_min=count, replicas_max=count, idle_power_w=IDLE_W, host_power_w=HOST_W, usd_per_s=0.0
    )
    setup = FleetService(service=service, terms=(terms,), power_cap=cap, **more)
    return run_fleet(setup, requests_for(scenario), seed=3)


def cap(limit_w, rule, **more):
    """One limit on everything."""
    return PowerCap(limits=(PowerLimit(limit_w=limit_w, rule=rule),), **more)


def always(low, high):
    return lambda reading: Clocks(low_ratio=low, high_ratio=high)


def near_limit(reading):
    return Clocks(low_ratio=0.7, high_ratio=0.9) if reading.drawn_frac > 0.8 else Clocks()


@pytest.fixture(scope="module")
def free():
    return served(BUSY, None)


def test_a_cap_above_the_peak_changes_no_bit(free):
    run = served(BUSY, cap(1e6, near_limit))
    for name in ("admitted_s", "first_token_s", "finish_s", "machine"):
        assert np.array_equal(getattr(run.outcome, name), getattr(free.outcome, name), equal_nan=True)
    assert run.energy_j == pytest.approx(free.energy_j, rel=1e-12)  # sums of steps, in another order
    assert run.power.changed_s.size == 0
    assert run.hurt["power-cap"].sum() == 0


@pytest.mark.parametrize("given", [cap(1e6, near_limit), cap(1800.0, near_limit)])
def test_readings_add_up_to_the_energy(given):
    """Idle watts and hosts of four replicas all the time, and what steps spend, booked as they end."""
    run = served(BUSY, replace(given, reading_s=0.5, delay_s=1.0), sample_s=0.5)
    at = run.power.at_s
    read_j = float((run.power.limits[0].drawn_w * np.diff(at, prepend=0.0)).sum())
    last = int(np.searchsorted(run.frames[:, 0], at[-1]))
    assert run.frames[last, 0] == at[-1]
    spent_j = float(run.frames[last, 10])
    assert read_j == pytest.approx(4 * (IDLE_W + HOST_W) * at[-1] + spent_j, rel=1e-3)
    assert run.energy_j + run.host_energy_j == pytest.approx(read_j, rel=0.1)  # up to what follows the last reading


def test_a_lower_clock_lowers_the_draw_and_takes_longer(free):
    run = served(BUSY, cap(100.0, always(0.7, 0.7), reading_s=0.1, delay_s=0.0))
    assert run.power.capped_s(run.end_s) == pytest.approx(run.end_s - 0.1)
    assert run.power.limits[0].over_frac == 1.0
    assert run.energy_above_idle_j < free.energy_above_idle_j
    assert np.nanmean(run.e2el_s) > np.nanmean(free.e2el_s)


def test_steps_stretch_as_the_phases_of_a_batch_do():
    """Prompts wait for arithmetic, answers of a few sequences for memory."""
    one = {**SERVED, "input_tokens": 4000, "rate": 0.5, "num_requests": 20}
    full, slow = (served(one, cap(1.0, always(clock, clock), reading_s=0.01, delay_s=0.0)) for clock in (1.0, 0.5))
    ttft, tpot = (np.nanmean(getattr(slow, m)) / np.nanmean(getattr(full, m)) for m in ("ttft_s", "tpot_s"))
    deployment = full.setup.service.pools[0].deployment
    whole, half = (phases(deployment, 1.0, 4000.0, 100.0, 0.0, clock) for clock in (1.0, 0.5))
    assert ttft == pytest.approx(half.prompt_s / whole.prompt_s, rel=0.2)
    assert tpot == pytest.approx(half.decode_s / whole.decode_s, rel=0.1)
    assert ttft > 1.5
    assert tpot < 1.1


def test_power_above_idle_follows_clock_and_voltage():
    """Half the clock at 0.8 of the voltage: 0.5 x 0.64."""
    assert span_frac(0.5) == pytest.approx(0.32)
    assert span_frac(1.0) == 1.0


def test_replicas_of_low_priority_are_slowed_alone():
    run = served(BUSY, cap(100.0, always(0.5, 1.0), reading_s=0.1, delay_s=0.0))
    assert sum(run.power.is_low) == 2
    low = run.power.is_low[run.power.replica_of_machine[run.outcome.machine]]
    late = run.outcome.first_token_s > 1.0
    assert np.nanmean(run.tpot_s[low & late]) > 1.1 * np.nanmean(run.tpot_s[~low & late])


def test_readings_by_hand():
    """Of two replicas the row lowers both clocks from 10 s, raises the high one at 30 s and all at 40 s; the first
    one's rack lowers it to 0.6 from 35 s on."""
    row = LimitReadings(
        limit=PowerLimit(name="row", kind="row", limit_w=100.0),
        rated_w=140.0,
        is_behind=np.array([True, True]),
        drawn_w=np.array([90.0, 110.0, 100.0, 120.0]),
        changed_s=np.array([10.0, 30.0, 40.0]),
        clock_frac=np.array([[0.7, 0.9], [0.7, 1.0], [1.0, 1.0]]),
    )
    rack = replace(
        row, is_behind=np.array([True, False]), changed_s=np.array([35.0]), clock_frac=np.array([[0.6, 0.6]])
    )
    found = PowerReadings(
        at_s=np.array([10.0, 20.0, 30.0, 40.0]),
        limits=(row, rack),
        is_low=np.array([True, False]),
        replica_of_machine=np.array([0, 1]),
        changed_s=np.array([10.0, 30.0, 35.0, 40.0]),
        clock_frac=np.array([[0.7, 0.9], [0.7, 1.0], [0.6, 1.0], [0.6, 1.0]]),
    )
    assert row.over_frac == 0.5
    assert row.oversubscribed_frac == pytest.approx(0.4)
    assert row.throttled_s(50.0) == 30.0
    assert (rack.throttled_s(50.0), found.capped_s(50.0)) == (15.0, 40.0)
    machine, from_s, until_s = (
        np.array([0, 1, 1, 0, -1]),
        np.array([0.0, 0.0, 30.0, 41.0, 0.0]),
        np.array([12.0, 12.0, 35.0, 50.0, 50.0]),
    )
    assert found.lowest_clock(machine, from_s, until_s).tolist() == [0.7, 0.9, 1.0, 0.6, 1.0]
    assert found.lowest_clock_at(0, machine, from_s, until_s).tolist() == [0.7, 0.9, 1.0, 1.0, 1.0]
    assert found.lowest_clock_at(1, machine, from_s, until_s).tolist() == [1.0, 1.0, 1.0, 0.6, 1.0]


def test_requests_that_a_cap_slowed_past_a_limit_say_so():
    """The limit lies between what full clocks reach and what half of them do."""
    one = {**SERVED, "input_tokens": 4000, "rate": 0.5, "num_requests": 20}
    free = served(one, None)
    limit = 1.3 * float(np.nanmax(free.ttft_s))
    slowed = cap(1.0, always(0.5, 0.5), reading_s=0.01, delay_s=0.0)
    hurt = served(one, slowed, limits_s={"ttft": limit}).hurt
    assert hurt["power-cap"].sum() > 10
    assert sum(int(flags.sum()) for name, flags in hurt.items() if name != "power-cap") == 0
    assert served(one, None, limits_s={"ttft": limit / 3}).hurt["power-cap"].sum() == 0


@pytest.mark.parametrize("wrong", [{"reading_s": 0.0}, {"delay_s": -1.0}, {"limit_w": 0.0}])
def test_a_cap_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ScenarioError, match="power"):
        cap(**{"limit_w": 1.0, "rule": near_limit, **wrong})
