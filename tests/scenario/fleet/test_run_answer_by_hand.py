"""Curves, objectives and regions of a fleet's answer, from runs of a handful of requests worked out by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.fleet.service.result import FRAME
from orrery.scenario.fleet import by_region, jobs
from orrery.scenario.fleet import power as limits_of
from orrery.scenario.fleet.answer import FleetAnswer, series_of
from orrery.scenario.fleet.by_hour import ByHour
from orrery.serving.simulation.tables import _kernel as tables

NAN, INF = float("nan"), float("inf")


def frames(**columns):
    """Samples with some columns, the others 0."""
    found = np.zeros((len(columns["now_s"]), len(FRAME)))
    for name, values in columns.items():
        found[:, FRAME.index(name)] = values
    return found


def pool(**more):
    usual = {"idle_power_w": 8.0, "host_power_w": 2.0, "usd_per_s": 0.01, "purchase": "owned", "replicas_max": 1}
    return SimpleNamespace(**usual | {"region": "", "is_committed": False} | more)


def answer(run, slo=(), attainment=None, shed=(), shed_s=()):
    """The answer of a run whose gateway shed some requests."""
    split = SimpleNamespace(shed=np.array(shed, dtype=bool), shed_s=np.array(shed_s, dtype=float))
    scenario = SimpleNamespace(slo=slo, attainment=attainment)
    inputs = SimpleNamespace(scenario=scenario)
    return FleetAnswer(inputs=inputs, traffic=SimpleNamespace(split=split), run=run, notes=(), seconds=0.0)


def curved(**more):
    """Three minutes at a pace of 100 s: two stretches, the last of which is cut."""
    at_s = np.array([20.0, 80.0, 120.0, 160.0])
    usual = {
        "setup": SimpleNamespace(pace_s=100.0, terms=[pool(), pool(usd_per_s=0.02)], regions=None),
        "end_s": 180.0,
        "frames": frames(
            now_s=at_s,
            serving=[1, 3, 5, 7],
            starting=[2, 0, 0, 1],
            lost=[0, 1, 1, 1],
            paid=[1, 2, 3, 4],
            waiting=[4, 6, 0, 2],
            running=[8, 0, 1, 2],
            energy_j=[0.0, 600.0, 1000.0, 1400.0],
        ),
        "paid": np.array([[1.0, 0.0], [3.0, 2.0], [4.0, 1.0], [4.0, 1.0]]),
        "arrive_s": np.array([0.0, 50.0, 99.0, 100.0, 500.0]),
        "ttft_s": np.array([1.0, 2.0, NAN, 5.0, 7.0]),
        "tpot_s": np.array([NAN, NAN, NAN, 0.5, 0.7]),
        "within": np.array([True, False, True, True, False]),
        "outcome": SimpleNamespace(region=np.array([0, 1, 1, 1, 0])),
    }
    return SimpleNamespace(**usual | more)


def test_curves_over_a_run_by_hand():
    """Two stretches of 100 s and of 80 s; what comes after the end counts in the last, two requests were shed.

    Between samples the energy is a line: 600 + 400 / 2 joules until 100 s, and 1400 in all.
    """
    found = series_of(answer(curved(), shed=[False] * 5 + [True] * 2, shed_s=[30.0, 170.0]))
    assert found["start_s"].tolist() == [0, 100]
    assert found["arrivals_per_s"] == pytest.approx([(3 + 1) / 100, (2 + 1) / 80])
    assert [found[name].tolist() for name in ("serving", "starting", "lost", "paid", "waiting", "running")] == [
        [2, 6],
        [1, 0.5],
        [0.5, 1],
        [1.5, 3.5],
        [5, 1],
        [4, 1.5],
    ]
    assert found["attained_frac"] == pytest.approx([2 / 4, 1 / 3])
    assert found["power_w"] == pytest.approx([(2 + 1) * 10 + 800 / 100, (4 + 1) * 10 + 600 / 80])
    assert found["usd_per_hour"] == pytest.approx([3600 * (2 * 0.01 + 1 * 0.02), 3600 * (4 * 0.01 + 1 * 0.02)])
    assert found["p99_ttft_s"] == pytest.approx([1.99, 6.98])
    assert math.isnan(found["p99_tpot_s"][0])
    assert found["p99_tpot_s"][1] == pytest.approx(0.698)


def test_a_long_run_has_stretches_of_several_samples():
    """28,900 s at a pace of 100 s are 289 stretches, more than 288: 145 of 200 s; a stretch without requests has no
    share, and each region its own rate."""
    regions = SimpleNamespace(regions=(SimpleNamespace(name="eu"), SimpleNamespace(name="us")))
    run = curved(end_s=28_900.0)
    run.setup.regions = regions
    found = series_of(answer(run))
    assert found["start_s"].size == 145
    assert found["start_s"][1] == 200.0
    assert found["eu_requests_per_s"][:3].tolist() == [1 / 200, 0, 1 / 200]
    assert found["us_requests_per_s"][:3].tolist() == [3 / 200, 0, 0]
    assert np.isnan(found["attained_frac"][1])
    assert found["attained_frac"][2] == 0.0
    run.setup.regions = None
    run.end_s = 28_800.0
    assert series_of(answer(run))["start_s"].size == 288
    run.end_s = 10.0  # shorter than a sample
    assert series_of(answer(run))["start_s"].tolist() == [0.0]


def held(ttft_s, within, shed=0):
    run = SimpleNamespace(
        latency_s=lambda metric: {"ttft": np.array(ttft_s), "tpot": np.zeros(len(ttft_s))}[metric],
        within=np.array(within, dtype=bool),
        setup=SimpleNamespace(limits_s={"ttft": 1.0}),
        hurt={"queue": np.array([True, True]), "shed": np.array([True, False])},
    )
    return lambda slo, attainment=None: answer(run, slo, attainment, [False] * len(ttft_s) + [True] * shed)


def test_an_objective_counts_all_that_came():
    """Of four served requests three are within a second, and one more was shed: three fifths; a request without a first
    token is never within. The third shortest of five is what 0.6 of them have."""
    of = held([0.2, NAN, 1.0, 0.4], [True, False, True, True], shed=1)
    found = of(["ttft:1000"], 0.6)
    assert (found.num_sent, found.num_shed) == (5, 1)
    assert found.attained_frac == 0.6
    assert found.slo["ttft"] == {
        "limit_s": 1.0,
        "needed_frac": 0.6,
        "attained_frac": 0.6,
        "value_s": 1.0,
        "is_met": True,
    }
    assert found.is_met
    assert found.beyond_budgets == ""
    assert found.hurt == {"queue": 2, "shed": 2}
    strict = of(["ttft:1000"], 0.61)
    assert (strict.is_met, strict.slo["ttft"]["value_s"]) == (False, INF)
    assert of(["ttft:1000"]).slo["ttft"]["needed_frac"] == 0.9
    assert of(["ttft:1000"], 0.8).beyond_budgets == ""
    assert of(["ttft:1000"], 0.81).beyond_budgets.startswith("The tenants' budgets shed 20")
    assert of([]).is_met is None


def test_several_objectives_hold_for_the_same_requests():
    """Both limits hold for enough requests each; together they hold for two of four. A percentile stands by itself."""
    of = held([0.2, 0.3, 1.0, 0.4], [True, True, False, False])
    assert of(["ttft:1000"], 0.9).is_met  # one limit: its own share counts
    assert not of(["ttft:1000", "tpot:50"], 0.9).is_met
    assert of(["ttft:1000", "tpot:50"], 0.5).is_met
    assert of(["p75_ttft:500"], 0.9).is_met
    assert of(["p75_ttft:500"]).slo["p75_ttft"]["needed_frac"] == 0.75
    assert not of(["p80_ttft:500"], 0.9).is_met


# --- regions


def done(*regions):
    return SimpleNamespace(status=np.full(len(regions), tables.DONE), region=np.array(regions))


def test_regions_and_origins_by_hand():
    """Four requests, one of which failed: origin a is nearest to region 0, b to region 1 (0 is closed to it).

    Region 0 serves one of each, so one guest of two; region 1 one of a. Region 0 ran 20 of 10 s, two replicas.
    """
    status = np.array([tables.DONE, tables.DONE, tables.DONE, tables.FAILED])
    regions = SimpleNamespace(
        router=SimpleNamespace(name="router"),
        regions=(SimpleNamespace(name="eu"), SimpleNamespace(name="us")),
        origins=(SimpleNamespace(name="a"), SimpleNamespace(name="b")),
        allowed=np.array([[True, True], [False, True]]),
        round_trip_s=np.array([[0.1, 0.2], [0.1, 0.3]]),
    )
    run = SimpleNamespace(
        setup=SimpleNamespace(
            regions=regions, limits_s={"ttft": 1.0}, terms=[pool(region="eu", usd_per_s=0.5), pool(region="us")]
        ),
        outcome=SimpleNamespace(status=status, region=np.array([0, 1, 0, -1])),
        origin=np.array([0, 0, 1, 1]),
        within=np.array([True, False, True, False]),
        ttft_s=np.array([1.0, 3.0, 2.0, NAN]),
        e2el_s=np.array([10.0, 30.0, 20.0, NAN]),
        paid_s=(20.0, 5.0),
        end_s=10.0,
        spans=[],
        spent_j=np.array([[1.0, 2.0], [3.0, 7.0]]),
        frames=frames(now_s=[10.0]),
    )
    away = np.array([False, True, False, False])
    served = np.array([True, False, True, False])
    assert by_region.nearest_of(regions).tolist() == [0, 1]
    eu = by_region._region(run, "eu", None, served, np.array([False, True, True, False]))
    assert (eu.num_requests, eu.attained_frac, eu.guests_frac) == (2, 1.0, 0.5)
    assert (eu.num_replicas, eu.rent_usd, eu.cost_usd, eu.carbon_g) == (2.0, 10.0, 10.0, None)
    assert eu.energy_j == 10 * 10 + 3
    assert eu.latencies.ttft_s == {"p50": 1.5, "p90": pytest.approx(1.9), "p99": pytest.approx(1.99)}
    assert eu.latencies.e2el_s["p50"] == 15.0
    hours = ByHour(**{name: np.array([2.0, 3.0]) for name in ByHour.__dataclass_fields__})
    us = by_region._region(run, "us", hours, ~served & (status == tables.DONE), away)
    assert (us.electricity_usd, us.carbon_g, us.cost_usd) == (5.0, 5.0, 5.0 + 5 * 0.01)
    a = by_region._origin(run, regions, 0, run.origin == 0, status == tables.DONE, away)
    assert (a.num_requests, a.attained_frac, a.served_in, a.elsewhere_frac) == (2, 0.5, {"eu": 1, "us": 1}, 0.5)
    run.setup.limits_s = {}
    assert by_region._share(run, served) is None


def beside(cost, energy_j, ttft_s, within, limits=("ttft",)):
    return SimpleNamespace(
        setup=SimpleNamespace(regions=None, limits_s=dict.fromkeys(limits, 1.0)),
        requests=SimpleNamespace(count=len(ttft_s)),
        within=np.array(within, dtype=bool),
        ttft_s=np.array(ttft_s),
        energy_j=energy_j,
        host_energy_j=10.0,
    ), cost


def test_a_run_beside_the_nearest_regions():
    (run, usd), (near, near_usd) = beside(6.0, 50.0, [2.0, 2.0], [1, 1]), beside(5.0, 30.0, [3.0, 3.0], [1, 0])
    found = by_region.against_nearest(run, near, (usd, near_usd))
    assert found.cost_frac == pytest.approx(0.2)
    assert found.energy_frac == pytest.approx(0.5)
    assert (found.carbon_frac, found.p99_ttft_s, found.attained_frac) == (None, -1.0, 0.5)
    assert found.sentence == (
        "Beside every request in its nearest region: cost +20.0 %, energy +50.0 %, p99 TTFT -1000 ms, requests in time "
        "+50.00 percentage points."
    )
    nobody, _ = beside(0.0, 0.0, [NAN], [0], limits=())
    none = by_region.against_nearest(run, nobody, (usd, 0.0))
    assert (none.cost_frac, none.p99_ttft_s, none.attained_frac) == (None, None, None)
    assert by_region.against_nearest(nobody, run, (0.0, usd)).p99_ttft_s is None


# --- jobs and power


def test_jobs_of_regions_pay_for_what_their_site_draws_besides(monkeypatch):
    """Two sites of 2 hours, the first hour cut: PUE 2 and 1; a kilowatt is free at each, and the first costs twice its
    price a joule of the device, 8 against 5, so the job runs at the second."""
    hour = {"start_s": [0.0, 1800.0, 5400.0], "length_s": [1800.0, 3600.0, 3600.0], "usd": [0.0] * 3}
    hour |= {"carbon_g": [0.0] * 3, "joule_carbon_g": [1.0, 2.0, 3.0], "energy_j": [9e9, 7.2e6, 14.4e6]}
    first = ByHour(**{k: np.array(v) for k, v in (hour | {"usd_per_j": [0.0, 4.0, 4.5]}).items()})
    second = ByHour(**{k: np.array(v) for k, v in (hour | {"usd_per_j": [0.0, 9.0, 5.0]}).items()})
    monkeypatch.setattr(jobs, "by_region_of_run", lambda run: {"eu": first, "us": second})
    regions = SimpleNamespace(
        regions=[SimpleNamespace(name="eu", pue_ratio=2.0), SimpleNamespace(name="us", pue_ratio=1.0)]
    )
    run = SimpleNamespace(setup=SimpleNamespace(regions=regions))
    top = SimpleNamespace(job=("train=1",), row_limit_w=5000.0, usd_per_tonne=None)
    found = jobs.region_jobs_of(SimpleNamespace(top=top), run)
    assert found.hours.base_w == pytest.approx([1000, 2000, 2000, 4000])
    assert found.hours.usd_per_j == pytest.approx([8, 9, 9, 5])
    assert found.hours.carbon_g == pytest.approx([4, 6, 2, 3])
    assert jobs.job_regions(found, run)["train"] == pytest.approx({"eu": 0.0, "us": 3.6e6}, abs=1.0)
    assert jobs.region_jobs_of(SimpleNamespace(top=SimpleNamespace(job=())), run) is None


def drawing(now_s, energy_j, end_s, spent_j):
    return SimpleNamespace(
        frames=frames(now_s=now_s, energy_j=energy_j),
        setup=SimpleNamespace(terms=[pool()]),
        spans=[],
        spent_j=np.array(spent_j)[:, None],
        end_s=end_s,
    )


def test_the_highest_mean_between_samples():
    """10 W at rest: 50 J in 10 s are 5 W more, then 10 J in the last 5 s; beside a run of two samples, both at once."""
    one = drawing([0.0, 10.0], [0.0, 50.0], 15.0, [0.0, 50.0, 60.0])
    assert jobs.peak_power_w(one) == pytest.approx(10 + 5)
    other = drawing([0.0, 5.0, 10.0], [0.0, 100.0, 100.0], 15.0, [0.0, 100.0, 100.0, 130.0])
    assert jobs.peak_power_w(other) == pytest.approx(10 + 20)
    assert jobs.peak_power_w(one, other) == pytest.approx(20 + 5 + 10)


def test_hours_under_limits_by_hand(monkeypatch):
    """A third and two thirds of the time at 90 and 60 W against 80 W, which are 100 W at most: mean 70 W."""
    cap = SimpleNamespace(
        limits=[
            SimpleNamespace(name="", kind="fleet", limit_w=80.0),
            SimpleNamespace(name="r", kind="row", limit_w=INF),
        ]
    )
    places = SimpleNamespace(rated_w=np.array([40.0, 60.0]), is_behind=np.array([[True, True], [False, True]]))
    monkeypatch.setattr(limits_of, "places_of", lambda cap, terms: places)
    hours = [
        SimpleNamespace(capped=SimpleNamespace(drawn_w=(90.0, 50.0), throttled_frac=(0.5, 0.0), clock_frac=0.7)),
        SimpleNamespace(capped=SimpleNamespace(drawn_w=(60.0, 30.0), throttled_frac=(0.25, 0.0), clock_frac=0.9)),
    ]
    setup = SimpleNamespace(power_cap=cap, terms=())
    found = limits_of.steady_power_json(setup, hours, np.array([10.0, 20.0]))["power"]
    whole, row = found["limits"]
    assert (found["budget_w"], found["lowest_mean_clock_frac"]) == (80.0, 0.7)
    assert (whole["replicas"], whole["rated_w"], whole["oversubscribed_frac"]) == (2, 100.0, 0.25)
    assert whole["mean_w"] == pytest.approx(70)
    assert (whole["peak_hour_w"], whole["throttled_s"]) == (90.0, 10.0)
    assert whole["over_limit_frac"] == pytest.approx(1 / 3)
    assert (row["limit_w"], row["replicas"], row["rated_w"], row["oversubscribed_frac"]) == (None, 1, 60.0, None)
    hours[1].capped = None
    assert limits_of.steady_power_json(setup, hours, np.array([10.0, 20.0])) == {}
