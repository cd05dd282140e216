"""Pools for prompts and pools that answer, scaled apart: each on what it sees, and every request accounted for."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.fleet.service.disruptions import Disruptions, Outage
from orrery.fleet.service.registry import scaler_of
from orrery.fleet.service.replicas import ENTRY, EXIT
from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms
from orrery.fleet.service.signals import Sample, Signals
from orrery.fleet.service.techniques.hpa import HpaKnobs, ratio
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.scenario.simulate import simulate
from orrery.serving.simulation.tables import _kernel as tables

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "rate": 20.0}
NO_SCALER = {"replicas": 1, "prefill_replicas": 1}


@pytest.mark.parametrize(("replicas", "prefill"), [(1, 1), (1, 2), (3, 1)])
def test_without_scalers_it_is_simulate_with_separate_pools_to_the_bit(replicas, prefill):
    sizes = {"replicas": replicas, "prefill_replicas": prefill, "num_requests": 400}
    one, whole = simulate_fleet(**LOAD, **sizes), simulate(**LOAD, **sizes).simulated
    out = one.run.outcome
    for mine, other in (
        (out.admitted_s, whole.admitted_s),
        (out.first_token_s, whole.first_token_s),
        (out.finish_s, whole.finish_s),
        (out.machine, whole.machine),
        (one.run.gap_counts, whole.gap_counts),
    ):
        assert np.array_equal(mine, other, equal_nan=True)


def peaks(**given):
    """Most replicas that ran of each phase."""
    answer = simulate_fleet(
        **{**LOAD, **given},
        days=0.01,
        replicas_min=1,
        replicas_max=4,
        prefill_replicas_min=1,
        prefill_replicas_max=4,
        autoscaler="hpa",
        autoscaler_knob="target=40",
        prefill_autoscaler="hpa",
        prefill_autoscaler_knob="metric=waiting target=4",
        cold_start_s=10,
    )
    assert answer.run.fates["served"] == answer.num_sent
    return [p["peak_replicas"] for p in answer.to_json()["pools"]]


def test_each_phase_grows_where_the_load_is():
    """Long prompts with four tokens each need prefill, short ones with long answers decode."""
    reading = peaks(input_tokens=4000, output_tokens=4, rate=12.0)
    writing = peaks(input_tokens=50, output_tokens=600, rate=20.0)
    assert reading[0] > 1
    assert reading[1] == 1
    assert writing[0] == 1
    assert writing[1] > 1


def drawn_setup(scenario, low, scalers, **more):
    service, _ = service_for(scenario)
    terms = tuple(
        PoolTerms(name=pool.role, replicas_min=n, replicas_max=pool.replicas, cold_start_s=7.0, zones=(pool.role[0],))
        for pool, n in zip(service.pools, low, strict=True)
    )
    first, second = (scaler_of(name, {}) if name else None for name in scalers)
    return FleetService(service=service, terms=terms, prefill_scaler=first, scaler=second, **more)


@settings(max_examples=25, deadline=None)
@given(
    low=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    scalers=st.tuples(*[st.sampled_from(["hpa", "keda-queue", "slo-planner"])] * 2),
    mtbf_s=st.sampled_from([float("inf"), 40.0, 10.0]),
    retries=st.booleans(),
    seed=st.integers(0, 5),
)
def test_every_request_of_scaled_phases_is_accounted_for(low, scalers, mtbf_s, retries, seed):
    scenario = read_scenario({**LOAD, "num_requests": 200, "replicas": 2, "prefill_replicas": 2, "seed": seed})
    setup = drawn_setup(
        scenario,
        low,
        scalers,
        disruptions=Disruptions(device_mtbf_s=mtbf_s, repair_s=20.0, retries=retries),
        capacity_requests_per_s=20.0,
        prefill_capacity_requests_per_s=20.0,
    )
    run = run_fleet(setup, requests_for(scenario), seed=seed)
    out = run.outcome
    assert sum(run.fates.values()) == 200
    assert np.array_equal(np.isfinite(out.finish_s), out.status == tables.DONE)
    if retries:
        assert run.fates["served"] == 200
    assert (run.paid.max(axis=0) <= 2).all()
    done = out.status == tables.DONE
    assert (out.finish_s[done] >= out.first_token_s[done]).all()


def test_answers_wait_while_no_replica_decodes():
    """The only decode replica is away from 3 to 13 s and starts for 7 s: nothing ends in between, all end later."""
    scenario = read_scenario({**LOAD, "rate": 10.0, "num_requests": 100, **NO_SCALER})
    outage = Outage(zone="a", start_s=3.0, length_s=10.0)
    run = run_fleet(
        drawn_setup(scenario, (1, 1), ("", ""), disruptions=Disruptions(outages=(outage,))), requests_for(scenario)
    )
    assert [(e.what, e.at_s) for e in run.events] == [("zone", 3.0), ("repaired", 13.0), ("start", 13.0), ("ready", 20)]
    assert run.fates["served"] == 100
    assert not ((run.outcome.finish_s > 3.0) & (run.outcome.finish_s < 20.0)).any()
    assert run.outcome.was_parked.any()
    alone = drawn_setup(scenario, (1, 1), ("", ""), disruptions=Disruptions(outages=(outage,), retries=False))
    assert run_fleet(alone, requests_for(scenario)).fates["failed"] > 0


def test_the_two_ways_in_leave_out_the_other_phase():
    assert (ENTRY, EXIT) == (tables.ANSWERS, tables.PROMPTS)


def test_hpa_reads_the_ninetieth_percentile_of_a_latency_in_ms():
    """TTFTs of 0.1 to 1.0 s: the 90th percentile is 910 ms; a target of 455 doubles two replicas."""
    seen = Signals(
        replicas_min=0,
        replicas_max=9,
        cold_start_s=0.0,
        capacity_requests_per_s=0.0,
        limits_s={},
        recent=lambda since_s: (np.arange(1, 11) / 10.0, np.full(3, 0.02)),
    )
    idle = {"starting": 0, "waiting": 0, "running": 1, "arrivals": 0, "since_s": 15.0, "busy_frac": 0.0, "kv_frac": 0.0}
    seen.add(Sample(now_s=15.0, serving=2, **idle))
    scaler = scaler_of("hpa", {"metric": "ttft", "target": "455"})
    assert scaler.rule(seen, scaler.knobs) == 4
    scaler = scaler_of("hpa", {"metric": "tpot", "target": "20"})
    assert scaler.rule(seen, scaler.knobs) == 2  # 20 ms of 20
    none = SimpleNamespace(recent=lambda since_s: (np.zeros(0), np.zeros(0)), now=seen.now)
    assert ratio(none, HpaKnobs(metric="ttft", target=1.0)) == 0.0


def test_a_file_scales_both_and_the_capacity_is_that_of_a_phase():
    answer = simulate_fleet(
        **LOAD,
        days=0.005,
        prefill_replicas_max=2,
        replicas_max=2,
        cold_start_s=5,
        slo=["p99_ttft:1000", "tpot:50"],
        prefill_autoscaler={"name": "slo-planner"},
        autoscaler={"name": "hpa", "metric": "kv", "target": 0.5},
    )
    assert not isinstance(answer, InfeasibleAnswer)
    setup = answer.run.setup
    both = simulate_fleet(**LOAD, days=0.005, slo=["tpot:50"]).run.setup.capacity_requests_per_s
    assert setup.prefill_capacity_requests_per_s > both  # half of the work each, so each carries more
    assert setup.capacity_requests_per_s > both
    assert [p["name"] for p in answer.to_json()["pools"]] == ["pool for prompts", "pool"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prefill_autoscaler": "hpa"}, "no pool is for prompts alone"),
        ({"prefill_replicas": 1, "prefill_replicas_max": 3}, "keep one of both"),
        ({"prefill_autoscaler_knob": "target=3"}, "prefill_autoscaler_knob: there is no autoscaler"),
        ({"prefill_replicas_max": 3, "steady": True}, "steady: takes replicas for both phases"),
        ({"prefill_replicas_max": 3, "survive": "replica", "slo": ["ttft:9"]}, "survive: sizes replicas for both"),
        ({"prefill_replicas_min": 3, "prefill_replicas_max": 2}, "exclude each other"),
    ],
)
def test_contradictory_phases_are_refused(wrong, message):
    with pytest.raises(ScenarioError, match=message):
        simulate_fleet(**LOAD, days=0.001, **wrong)


def test_more_prefill_is_found_where_prefill_is_short():
    short = {**LOAD, "input_tokens": 4000, "output_tokens": 4, "rate": 14.0, "days": 0.003, "slo": ["p99_ttft:1500"]}
    answer = simulate_fleet(**short, prefill_replicas_min=1, replicas=1, change=True)
    assert answer.is_met is False
    assert answer.change.text.startswith("1 replica more of prefill")
    assert answer.change.settings["prefill_replicas_min"] == 2
