"""A fleet whose requests come live: the same arrivals as recorded ones meet the same service, to the bit."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.service.disruptions import Disruptions, Outage
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.fleet.service.power_readings import PowerCap, PowerLimit
from orrery.fleet.service.registry import scaler_of
from orrery.fleet.service.replicas import LOST, OFF, SERVING, STARTING
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.live.result import FAILED
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.prepare import blocks_of

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "seed": 2}
OUTAGE = Outage(zone="a", start_s=30.0, length_s=20.0)
PASSING = {"device_mtbf_s": 60.0, "repair_s": 20.0}


def setup_of(low, high, *, scaler="", knobs=None, cold_start_s=20.0, zones=("",), purchase="on-demand", **more):
    service, _ = service_for(read_scenario({**LOAD, "replicas": high, "router": more.pop("router", "least-loaded")}))
    terms = PoolTerms(
        name="pool",
        replicas_min=low,
        replicas_max=high,
        cold_start_s=cold_start_s,
        usd_per_s=0.001,
        zones=zones,
        purchase=purchase,
    )
    found = scaler_of(scaler, knobs or {}) if scaler else None
    return FleetService(service=service, terms=(terms,), scaler=found, **more)


def live_of(setup, requests):
    found = LiveFleet.of(setup, seed=2, sizes=Sizes.of(requests, blocks_of(setup.service, 0)[0]))
    assert isinstance(found, LiveFleet)
    return found


def submit(live, requests, i):
    return live.submit(
        now_s=float(requests.arrive_s[i]),
        input_tokens=int(requests.input_tokens[i]),
        output_tokens=int(requests.output_tokens[i]),
    )


def played(live, requests, until_s, step_s=0.37):
    """First and last token's time of every request, the clock going in steps that nothing of the fleet knows."""
    first_s, last_s, next_one = np.full(requests.count, np.nan), np.full(requests.count, np.nan), 0
    for now_s in np.arange(step_s, until_s, step_s):
        while next_one < requests.count and requests.arrive_s[next_one] <= now_s:
            assert submit(live, requests, next_one) == next_one
            next_one += 1
        events = live.advance(float(now_s))
        for id, at_s, num_tokens in zip(events.id, events.time_s, events.num_tokens, strict=True):
            if num_tokens:
                first_s[id] = at_s if np.isnan(first_s[id]) else first_s[id]
                last_s[id] = at_s
    return first_s, last_s


@pytest.mark.parametrize(
    ("low", "high", "options"),
    [
        (1, 4, {"scaler": "hpa", "knobs": {"target": "12"}}),
        (0, 3, {"scaler": "keda-queue"}),
        (1, 3, {"scaler": "slo-planner", "capacity_requests_per_s": 12.0}),
        (2, 3, {"router": "power-of-two", "disruptions": Disruptions(**PASSING)}),
        (
            2,
            4,
            {"zones": ("a", "b"), "disruptions": Disruptions(outages=(Outage(zone="a", start_s=30.0, length_s=20.0),))},
        ),
    ],
)
def test_the_same_arrivals_agree_with_the_fleet_to_the_bit(low, high, options):
    setup = setup_of(low, high, **options)
    requests = requests_for(read_scenario({**LOAD, "rate": 35.0, "num_requests": 3000}))
    run = run_fleet(setup, requests, seed=2)
    live = live_of(setup, requests)
    first_s, last_s = played(live, requests, 200.0)
    assert np.array_equal(first_s, run.outcome.first_token_s, equal_nan=True)
    assert np.array_equal(last_s, run.outcome.finish_s, equal_nan=True)
    before_s = run.outcome.finish_s.max()
    assert [e for e in live.events if e.at_s < before_s] == [e for e in run.events if e.at_s < before_s]
    assert len(run.events) > 0


def test_a_capped_fleet_is_the_recorded_one_to_the_bit_and_keeps_no_readings():
    """Clocks go up and down with what is drawn: idle devices draw nothing here, busy ones some 600 W each."""
    rule = POWER_CAPS.get("two-thresholds").rule
    knobs = POWER_CAPS.get("two-thresholds").knobs()
    limit = PowerLimit(limit_w=900.0, rule=lambda reading: rule(reading, knobs))
    cap = PowerCap(limits=(limit,), reading_s=1.0, delay_s=3.0)
    setup = setup_of(3, 3, power_cap=cap)
    requests = requests_for(read_scenario({**LOAD, "rate": 50.0, "num_requests": 2000}))
    run = run_fleet(setup, requests, seed=2)
    assert run.power.changed_s.size > 0
    live = live_of(setup, requests)
    first_s, last_s = played(live, requests, 100.0)
    assert np.array_equal(first_s, run.outcome.first_token_s, equal_nan=True)
    assert np.array_equal(last_s, run.outcome.finish_s, equal_nan=True)
    assert live._control.meter.readings == []


def test_a_week_of_disruptions_is_the_same_again_when_it_is_drawn_for_two():
    """What is planned later lies behind the first week, and is what two weeks at once would have."""
    law = Disruptions(device_mtbf_s=2e5, repair_s=100.0)
    requests = requests_for(read_scenario({**LOAD, "rate": 1.0, "num_requests": 2}))
    first, second = (live_of(setup_of(1, 2, disruptions=law), requests) for _ in range(2))
    first._horizon_s, week = 7 * 86_400.0, 7 * 86_400.0
    planned = [d.at_s for d in first._control.disruptions]
    first._control.plan_disruptions(week, 2 * week)
    second._control.disruptions.clear()
    second._control.plan_disruptions(-1.0, 2 * week)
    assert [d.at_s for d in first._control.disruptions] == [d.at_s for d in second._control.disruptions]
    assert max(planned) <= week < max(d.at_s for d in first._control.disruptions)


@pytest.fixture
def quiet():
    """One to three replicas, started by hand, ready after 20 s."""
    requests = requests_for(read_scenario({**LOAD, "rate": 1.0, "num_requests": 2}))
    return live_of(setup_of(1, 3), requests), requests


def states(live):
    return [state for _, state, _, _ in live.replicas]


def test_replicas_that_are_wanted_start_and_are_ready_after_their_cold_start(quiet):
    live, _ = quiet
    live.set_replicas(3, now_s=10.0)
    assert states(live) == [SERVING, STARTING, STARTING]
    live.advance(29.9)
    assert states(live) == [SERVING, STARTING, STARTING]
    live.advance(30.0)
    assert states(live) == [SERVING, SERVING, SERVING]
    live.set_replicas(1, now_s=50.0)
    live.advance(65.0)  # given back at a control moment, every 15 s
    assert states(live) == [SERVING, OFF, OFF]
    assert live.paid_s() == [65.0 + 2 * (60.0 - 10.0)]
    assert live.targets == [1]


def test_a_killed_replica_is_followed_by_another_and_comes_back_when_it_is_repaired(quiet):
    live, requests = quiet
    id = submit(live, requests, 0)
    before = live.advance(requests.arrive_s[0] + 0.05).num_tokens.sum()
    live.kill(0, now_s=live.clock_s)
    assert states(live) == [LOST, STARTING, OFF]
    assert live.num_lost == 1
    assert live.num_waiting == 0  # it is on its way to the place where requests wait
    live.advance(2.0)
    assert live.num_waiting == 1
    events = live.advance(40.0)
    assert set(events.id.tolist()) == {id}
    assert before + events.num_tokens.sum() == 60
    assert events.time_s.min() > requests.arrive_s[0] + 0.05 + 20.0
    live.revive(0, now_s=41.0)
    assert states(live) == [OFF, SERVING, OFF]


def test_requests_of_a_killed_replica_may_fail(quiet):
    live, requests = quiet
    submit(live, requests, 0)
    live.advance(requests.arrive_s[0] + 0.05)
    live.kill(0, now_s=live.clock_s, retry=False)
    assert live.advance(live.clock_s).end.tolist()[-1] == FAILED


def test_a_slow_replica_takes_as_many_times_as_long(quiet):
    live, requests = quiet
    live.slow(0, 3.0)
    submit(live, requests, 0)
    slow_s = np.diff(live.advance(30.0).time_s)[1:-1]
    live.slow(0, 1.0)
    live.submit(now_s=40.0, input_tokens=int(requests.input_tokens[0]), output_tokens=60)
    assert slow_s == pytest.approx(3.0 * np.diff(live.advance(60.0).time_s)[1:-1])


def test_what_cannot_be_done_is_refused(quiet):
    live, requests = quiet
    with pytest.raises(ScenarioError, match="the pools run 1 to 3"):
        live.set_replicas(4, now_s=0.0)
    with pytest.raises(ScenarioError, match="there is no 3"):
        live.kill(3, now_s=0.0)
    scaled = live_of(setup_of(1, 3, scaler="hpa"), requests)
    with pytest.raises(ScenarioError, match="hpa decides"):
        scaled.set_replicas(2, now_s=0.0)
