"""Services over days: the same loop as a simulation, conservation, billing, and autoscalers by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.fleet.service.disruptions import Disruptions, Exposure, Outage, drawn
from orrery.fleet.service.registry import AUTOSCALERS, scaler_of
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms
from orrery.fleet.service.tenants import Tenant, beyond, split
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.scenario.simulate import simulate
from orrery.serving.simulation.tables import _kernel as tables

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "seed": 2}


def setup_of(scenario, low, *, scaler="", cold_start_s=30.0, **more):
    """A fleet of one pool with that scenario's replicas as its most."""
    service, _ = service_for(scenario)
    terms = PoolTerms(
        name="pool",
        replicas_min=low,
        replicas_max=scenario.replicas or 1,
        cold_start_s=cold_start_s,
        usd_per_s=0.001,
        idle_power_w=100.0,
        host_power_w=50.0,
    )
    knobs = more.pop("knobs", {})
    return FleetService(service=service, terms=(terms,), scaler=scaler_of(scaler, knobs) if scaler else None, **more)


def same(run, simulated):
    """Whether every time of every request is the same to the bit."""
    pairs = (
        (run.arrive_s, simulated.arrive_s),
        (run.outcome.admitted_s, simulated.admitted_s),
        (run.outcome.first_token_s, simulated.first_token_s),
        (run.outcome.finish_s, simulated.finish_s),
        (run.outcome.machine, simulated.machine),
        (run.gap_counts, simulated.gap_counts),
    )
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("router", ["least-loaded", "power-of-two", "round-robin"])
def test_without_a_scaler_it_is_simulate_to_the_bit(replicas, router):
    scenario = read_scenario(
        {**LOAD, "rate": 30.0 * replicas, "num_requests": 1500, "replicas": replicas, "router": router}
    )
    run = run_fleet(setup_of(scenario, replicas), requests_for(scenario), seed=2)
    assert same(run, simulate(scenario).simulated)


@pytest.mark.parametrize("batch", [64, 300, 100_000])
def test_rows_that_are_used_again_change_nothing(batch):
    """Requests of different lengths reach the queue in another order than they come."""
    scenario = read_scenario(
        {**LOAD, "rate": 40.0, "num_requests": 2000, "input_tokens_std": 400, "router": "power-of-two", "replicas": 2}
    )
    run = run_fleet(setup_of(scenario, 2), requests_for(scenario), seed=2, batch=batch)
    assert same(run, simulate(scenario).simulated)


@pytest.mark.parametrize("kind", [{"turns": 3, "think_s": 5}, {"calls": 3}, {"prefix_tokens": 256}])
def test_followers_and_prefixes_are_simulate_to_the_bit(kind):
    scenario = read_scenario(
        {**LOAD, "rate": 5.0, "num_requests": 300, "replicas": 2, "router": "prefix-aware", **kind}
    )
    run = run_fleet(setup_of(scenario, 2), requests_for(scenario), seed=2, batch=50)
    assert same(run, simulate(scenario).simulated)


def test_more_replicas_never_cost_less_and_all_are_paid_for():
    costs = []
    for replicas in (1, 2, 4):
        scenario = read_scenario({**LOAD, "rate": 30.0, "num_requests": 600, "replicas": replicas})
        run = run_fleet(setup_of(scenario, replicas, horizon_s=60.0), requests_for(scenario))
        assert run.cost_usd == pytest.approx(replicas * run.end_s * 0.001, rel=1e-12)
        assert run.energy_j == pytest.approx(run.energy_above_idle_j + replicas * run.end_s * 100.0)
        assert run.host_energy_j == pytest.approx(replicas * run.end_s * 50.0)
        costs.append(run.cost_usd)
    assert costs == sorted(costs)


FLEETS = st.fixed_dictionaries(
    {
        "scaler": st.sampled_from(["", *AUTOSCALERS.techniques]),
        "low": st.integers(0, 2),
        "replicas": st.integers(2, 4),
        "rate": st.floats(1.0, 150.0),
        "cold_start_s": st.sampled_from([0.0, 7.0, 45.0]),
        "mtbf_s": st.sampled_from([float("inf"), 60.0, 15.0]),
        "retries": st.booleans(),
        "batch": st.sampled_from([40, 100_000]),
        "seed": st.integers(0, 5),
    }
)


@settings(max_examples=40, deadline=None)
@given(drawn_fleet=FLEETS)
def test_every_request_is_served_refused_failed_or_still_there(drawn_fleet):
    d = drawn_fleet
    if d["low"] == 0 and not d["scaler"]:
        d = {**d, "low": 1}
    scenario = read_scenario(
        {**LOAD, "rate": d["rate"], "num_requests": 400, "replicas": d["replicas"], "seed": d["seed"]}
    )
    requests = requests_for(scenario)
    faults = Disruptions(device_mtbf_s=d["mtbf_s"], repair_s=20.0, retries=d["retries"])
    setup = setup_of(
        scenario,
        d["low"],
        scaler=d["scaler"],
        cold_start_s=d["cold_start_s"],
        disruptions=faults,
        capacity_requests_per_s=40.0,
    )
    run = run_fleet(setup, requests, seed=d["seed"], batch=d["batch"])
    assert sum(run.fates.values()) == requests.count
    out = run.outcome
    done = out.status == tables.DONE
    assert np.array_equal(np.isfinite(out.finish_s), done)
    assert (out.finish_s[done] >= out.first_token_s[done]).all()
    assert (out.admitted_s[done] >= out.reached_s[done]).all()
    if d["retries"]:
        assert run.fates["served"] == requests.count
    assert run.paid.max() <= d["replicas"]
    assert sum(int(v.sum()) for v in run.hurt.values()) == int((~run.within).sum())
    for span in run.spans:
        assert 0.0 <= span.start_s <= span.end_s
    little(run)


def little(run):
    """Little's law: the mean number in the system is the rate times the mean time there, in any run that empties."""
    if run.fates["served"] != run.requests.count:
        return
    begin_s, end_s = run.outcome.reached_s, run.outcome.finish_s
    moments = np.concatenate((begin_s, end_s))
    steps = np.concatenate((np.ones(begin_s.size), -np.ones(end_s.size)))
    order = np.argsort(moments, kind="stable")
    there = np.cumsum(steps[order])[:-1]
    area = float((there * np.diff(moments[order])).sum())
    assert area == pytest.approx(float((end_s - begin_s).sum()), rel=1e-9)


def test_a_replica_starts_a_cold_start_late_and_the_first_request_waits_for_it():
    """From zero: KEDA polls at 30 s, sees the request of second 0, and 45 s later the first token can come."""
    scenario = read_scenario({**LOAD, "num_requests": 1, "rate": 1.0, "replicas": 1})
    run = run_fleet(setup_of(scenario, 0, scaler="keda-queue", cold_start_s=45.0), requests_for(scenario))
    assert [e.what for e in run.events] == ["start", "ready"]
    assert run.outcome.admitted_s[0] == pytest.approx(75.0, abs=1e-6)
    assert bool(run.outcome.was_parked[0])
    alone = simulate(scenario).simulated
    served_s = alone.finish_s[0] - alone.admitted_s[0]
    assert run.outcome.finish_s[0] - run.outcome.admitted_s[0] == pytest.approx(served_s, rel=1e-9)
    assert run.paid_s[0] == pytest.approx(run.end_s - 30.0)


def test_an_outage_takes_the_zone_and_its_requests_go_elsewhere():
    scenario = read_scenario({**LOAD, "rate": 40.0, "num_requests": 1200, "replicas": 2})
    service, _ = service_for(scenario)
    terms = PoolTerms(name="p", replicas_min=2, replicas_max=2, cold_start_s=5.0, zones=("a", "b"))
    outage = Outage(zone="b", start_s=10.0, length_s=8.0)
    setup = FleetService(service=service, terms=(terms,), disruptions=Disruptions(outages=(outage,)))
    run = run_fleet(setup, requests_for(scenario))
    assert [(e.what, e.at_s) for e in run.events if e.replica == 1] == [
        ("zone", 10.0),
        ("repaired", 18.0),
        ("start", 18.0),
        ("ready", 23.0),
    ]
    away = (run.outcome.reached_s > 10.0) & (run.outcome.finish_s < 23.0)
    assert away.any()
    assert (run.outcome.machine[away] == 0).all()
    assert run.outcome.was_lost.any()
    assert run.fates["served"] == 1200


def test_slow_spells_lengthen_steps_by_their_ratio():
    scenario = read_scenario({**LOAD, "rate": 0.5, "num_requests": 40})
    requests = requests_for(scenario)
    plain = run_fleet(setup_of(scenario, 1), requests)
    with pytest.raises(ScenarioError, match="check the unit"):
        run_fleet(setup_of(scenario, 1, disruptions=Disruptions(slow_mtbf_s=1e-9)), requests)
    slow = run_fleet(
        setup_of(scenario, 1, disruptions=Disruptions(slow_mtbf_s=1.0, slow_length_s=1e5, slow_ratio=2.0)), requests
    )
    late = plain.arrive_s > 20.0
    assert np.median(slow.tpot_s[late] / plain.tpot_s[late]) == pytest.approx(2.0, rel=0.02)


def test_draws_of_faults_have_their_rates():
    law = Disruptions(device_mtbf_s=1e4, node_mtbf_s=4e4, spot_mtbi_s=2e4)
    replicas = [Exposure(num_devices=4, num_nodes=1, is_spot=k < 50, zone="") for k in range(100)]
    found = drawn(law, replicas, 1e5, seed=1)
    counts = {cause: sum(d.cause == cause for d in found) for cause in ("device", "node", "spot")}
    expected = {"device": 100 * 4 * 10, "node": 100 * 2.5, "spot": 50 * 5}
    for cause, mean in expected.items():
        assert abs(counts[cause] - mean) < 5 * mean**0.5
    assert list(found) == sorted(found, key=lambda d: d.at_s)
    assert drawn(Disruptions(), replicas, 1e5, seed=1) == ()


def test_a_token_bucket_by_hand():
    """One token a second, at most two: of 0, 0, 0, 0.5, 1, 5, 5, 5 the third, fourth and last find none."""
    assert beyond(np.array([0, 0, 0, 0.5, 1, 5, 5, 5.0]), 1.0, 2.0).tolist() == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
        True,
    ]


def test_tenants_get_their_shares_and_budgets_shed():
    scenario = read_scenario({**LOAD, "rate": 100.0, "num_requests": 20_000})
    requests = requests_for(scenario)
    found = split(
        requests,
        (
            Tenant(name="a", share_frac=0.25, priority_rank=1.0),
            Tenant(name="b", share_frac=0.75, budget_requests_per_s=30.0, burst_requests=50.0),
        ),
        seed=1,
    )
    assert (found.tenant == 0).mean() == pytest.approx(0.25, abs=0.02)
    assert found.requests.count + found.shed.sum() == 20_000
    assert not found.shed[found.tenant == 0].any()
    assert (found.requests.client == 1).sum() == pytest.approx(30.0 * 200.0, rel=0.03)
    with pytest.raises(ScenarioError, match="add up to 0"):
        split(requests, (Tenant(name="a", share_frac=0.5),), seed=1)


@pytest.mark.parametrize(("low", "high"), [(3, 2), (0, 0)])
def test_contradictory_pools_are_refused(low, high):
    with pytest.raises(ScenarioError, match="pool x: replicas"):
        PoolTerms(name="x", replicas_min=low, replicas_max=high)


def test_streams_of_faults_do_not_depend_on_each_other():
    one = drawn(
        Disruptions(device_mtbf_s=100.0), [Exposure(num_devices=1, num_nodes=1, is_spot=False, zone="")], 1e4, 3
    )
    both = drawn(
        Disruptions(device_mtbf_s=100.0, node_mtbf_s=50.0),
        [Exposure(num_devices=1, num_nodes=1, is_spot=False, zone="")],
        1e4,
        3,
    )
    assert one == tuple(d for d in both if d.cause == "device")
    assert stream(3, "x").random() == stream(3, "x").random()
