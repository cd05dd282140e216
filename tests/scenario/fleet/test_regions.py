"""Regions of a FLEET.toml: prices, hours and carbon by region, traffic by origin, answers, and what is refused."""

import json

import numpy as np
import pytest

from orrery.base.errors import OrreryError, ScenarioError
from orrery.cli.main import run
from orrery.fleet.service.rate_curve import RateCurve
from orrery.reports.fleet import fleet_report
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.loss_tries import RegionTries
from orrery.scenario.fleet.moved_cache import sentences
from orrery.scenario.fleet.origins import origin_curves
from orrery.scenario.fleet.placed import EVERYWHERE
from orrery.scenario.fleet.read import read_fleet
from orrery.scenario.fleet.traffic import traffic_for

BASE = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 300,
    "output_tokens": 30,
    "rate": 2.0,
    "days": 0.003,
    "cold_start_s": 20.0,
    "slo": ["ttft:1000", "tpot:50"],
    "seed": 3,
}
TWO = [{"name": "eu", "place": "westeurope"}, {"name": "us", "place": "eastus"}]
NEAR = {"name": "near", "place": "uksouth"}
FROM = [{**NEAR, "share": 0.7}, {"name": "far", "place": "westus"}]


def asked(**more):
    """A fleet in two regions."""
    return simulate_fleet(**{**BASE, "region": TWO, "origin": FROM, **more})


# -- where it is, and what it costs there -----------------------------------------------------------------------------


def test_the_published_way_is_added_and_each_origin_is_served_nearest():
    """uksouth is 11 ms from westeurope, westus 67 ms from eastus; a region has a replica of its own."""
    answer = asked()
    plain = simulate_fleet(**BASE)
    found = answer.by_region
    assert [r.name for r in found.regions] == ["eu", "us"]
    assert answer.run.setup.regions.round_trip_s == pytest.approx(np.array([[0.011, 0.078], [0.146, 0.067]]))
    assert [o.elsewhere_frac for o in found.origins] == [0.0, 0.0]
    near, far = (answer.run.ttft_s[answer.run.origin == k].min() for k in (0, 1))
    fastest = plain.run.ttft_s.min()
    assert near == pytest.approx(fastest + 0.011, abs=1e-9)
    assert far == pytest.approx(fastest + 0.067, abs=1e-9)
    assert answer.run.paid.shape[1] == 2
    assert sum(r.num_requests for r in found.regions) == answer.num_sent


def test_what_moving_a_cache_would_have_to_beat():
    """Llama 3.1 8B keeps 32 layers x 8 heads x 128 x 2 x 2 bytes a token: 131,072, so 300 tokens are 39.3 MB. The rate
    is that over the time to the first token, the price the rent of so long over so many gigabytes."""
    answer = asked(region=[{**TWO[0], "prices": "h100-sxm=3.6"}, TWO[1]])
    first, second = answer.by_region.moved
    assert (first.region, first.context_tokens, first.cache_bytes) == ("eu", 300.0, 300 * 131_072)
    alone_s = answer.run.setup.regions.served.ttft_s[0]
    assert first.recompute_s == alone_s
    assert first.quicker_above_bytes_per_s == pytest.approx(300 * 131_072 / alone_s)
    assert first.recompute_usd == pytest.approx(alone_s * 3.6 / 3600)
    assert first.cheaper_below_usd_per_gb == pytest.approx(alone_s * 3.6 / 3600 / 0.0393216)
    assert second.recompute_usd != first.recompute_usd
    assert [m["region"] for m in answer.to_json()["moved_cache"]] == ["eu", "us"]
    told = sentences(answer.by_region.moved)
    assert [("(eu);" in line, "(us);" in line) for line in told] == [(True, False), (False, True)]
    assert told[0].startswith("A cache of 300 tokens (39.3 MB) is computed again in ")
    assert "(eu, us);" in sentences(asked().by_region.moved)[0]
    assert "moved_cache" not in simulate_fleet(**BASE).to_json()


def test_devices_cost_what_they_cost_in_their_region():
    """One replica of one device for the run: its seconds at the region's price, or the pool's own."""
    regions = [{**TWO[0], "prices": "h100-sxm=3.6,l4=1"}, TWO[1]]
    pools = [{"name": "a", "region": "eu"}, {"name": "b", "region": "us", "usd_per_hour": 1.8}]
    answer = asked(region=regions, pool=pools, usd_per_hour=9.0)
    end_s = answer.run.end_s
    assert [r.rent_usd for r in answer.by_region.regions] == pytest.approx([end_s * 0.001, end_s * 0.0005])
    with pytest.raises(ScenarioError, match=r"region eu: prices: there is none for h100-sxm; write h100-sxm=2.5"):
        asked(region=[{**TWO[0], "prices": "l4=1"}, TWO[1]])


def test_carbon_is_the_integral_over_each_region_s_hours():
    """Two hours from midnight UTC; eu's clock is an hour ahead (rows 1 and 2: 100 and 300 g), us five behind (rows 19
    and 20: 20 and 40 g), and its site takes 1.5 times what the machines draw. One owned replica each, at no load."""
    eu = ",".join("100" if h == 1 else "300" if h == 2 else "0" for h in range(24))
    us = ",".join("20" if h == 19 else "40" if h == 20 else "0" for h in range(24))
    regions = [{**TWO[0], "carbon_g_per_kwh": eu}, {**TWO[1], "carbon_g_per_kwh": us, "pue": 1.5}]
    answer = asked(region=regions, rate=0.002, days=2 / 24, purchase="owned", usd_per_hour=1.0)
    device = answer.run.setup.service.pools[0].deployment.cluster.device
    kwh = (device.idle_power_w + device.host_power_w) / 1e3  # of an hour
    found = {r.name: r.carbon_g for r in answer.by_region.regions}
    assert found["eu"] == pytest.approx(kwh * 400.0, rel=0.02)
    assert found["us"] == pytest.approx(1.5 * kwh * 60.0, rel=0.02)
    assert answer.carbon_g == pytest.approx(sum(found.values()))
    assert answer.by_hour.carbon_g[:2] == pytest.approx([kwh * (100 + 30), kwh * (300 + 60)], rel=0.02)


def test_a_clock_that_is_half_an_hour_ahead_meets_two_rows_in_an_hour():
    """India is 5.5 h ahead: of the first hour of UTC half is its hour 5 (100 g) and half its hour 6 (300 g)."""
    curve = ",".join("100" if h == 5 else "300" if h == 6 else "0" for h in range(24))
    one = {"name": "in", "place": "centralindia", "carbon_g_per_kwh": curve}
    answer = asked(region=[one], origin=[], rate=0.002, days=1 / 24, purchase="owned", usd_per_hour=1.0)
    device = answer.run.setup.service.pools[0].deployment.cluster.device
    kwh = (device.idle_power_w + device.host_power_w) / 1e3
    assert answer.by_hour.carbon_g == pytest.approx([kwh * 200.0], rel=0.02)
    assert answer.by_hour.joule_carbon_g == pytest.approx([200.0 / 3.6e6])


def test_owned_pools_pay_their_region_s_price():
    regions = [{**TWO[0], "usd_per_kwh": 0.5}, {**TWO[1], "usd_per_kwh": 0.25}]
    answer = asked(region=regions, purchase="owned", usd_per_hour=1.0)
    eu, us = answer.by_region.regions
    assert (eu.electricity_usd, us.electricity_usd) == pytest.approx(
        (eu.energy_j / 3.6e6 * 0.5, us.energy_j / 3.6e6 * 0.25)
    )
    assert answer.electricity_usd == pytest.approx(eu.electricity_usd + us.electricity_usd)
    assert answer.cost_usd == pytest.approx(eu.cost_usd + us.cost_usd)
    rented = asked(region=regions)
    assert rented.electricity_usd == 0.0
    assert sum("a rent contains electricity" in note for note in rented.notes) == 2


def test_one_region_is_no_region():
    """A region without a way and without hours gives the same run to the bit, by table and by flag."""
    curved = {**BASE, "rate_curve": "diurnal", "bursts_per_day": 200, "tenant": [{"share": 0.5}, {"share": 0.5}]}
    scaled = {**curved, "replicas_min": 1, "replicas_max": 3, "autoscaler": "hpa", "start_hour": 9}
    plain = simulate_fleet(**scaled)
    one = simulate_fleet(**scaled, region=[{"name": "here"}])
    assert one.by_region.origins[0].name == EVERYWHERE
    for name in ("reached_s", "admitted_s", "first_token_s", "finish_s", "machine"):
        assert np.array_equal(getattr(one.run.outcome, name), getattr(plain.run.outcome, name), equal_nan=True), name
    assert one.cost_usd == plain.cost_usd
    assert one.hurt == plain.hurt
    assert np.array_equal(one.run.frames, plain.run.frames)


def test_flags_name_places():
    """Regions and origins by place; every region has the pool, and each origin is within its own."""
    answer = simulate_fleet(**BASE, regions="westeurope,eastus", origins="westeurope=0.25,eastus=0.75")
    assert [(r.name, r.guests_frac) for r in answer.by_region.regions] == [("westeurope", 0.0), ("eastus", 0.0)]
    assert [t.name for t in answer.run.setup.terms] == ["westeurope", "eastus"]
    shares = [o.num_requests / answer.num_sent for o in answer.by_region.origins]
    assert shares == pytest.approx([0.25, 0.75], abs=0.06)


# -- where it comes from ----------------------------------------------------------------------------------------------


def test_a_replica_is_full_where_its_rate_ends_without_any_slo():
    """Without limits a replica is full near the highest rate that can leave it; a limit makes it so before."""
    free, bound = (asked(slo=slo, days=0.0005).run.setup.regions.served for slo in ([], ["tpot:8"]))
    assert np.isfinite(free.capacity_requests).all()
    assert (free.capacity_requests > bound.capacity_requests).all()
    assert (free.ttft_s > 0.0).all()


def test_origins_wake_at_their_own_hours():
    """A diurnal day with its peak at 14 by each clock: for an origin nine hours ahead that is 5 in the morning of UTC,
    for one six behind 20 at night; a minute's rate is the sum of both."""
    origins = [
        {"name": "tokyo", "utc_offset": 9, "share": 0.75, "rtt_ms": "r=1"},
        {"name": "chicago", "utc_offset": -6, "rtt_ms": "r=1", "peak_to_trough": 1},
        {"name": "london", "utc_offset": 0, "share": 0.0, "rtt_ms": "r=1"},
    ]
    inputs = read_fleet({**BASE, "days": 1, "rate_curve": "diurnal", "region": [{"name": "r"}], "origin": origins})
    curves = origin_curves(inputs, 86_400.0, 3)
    assert curves.mean(axis=1) == pytest.approx([0.75, 0.25, 0.0])
    assert abs(int(curves[0].argmax()) - 5 * 60) <= 1
    assert curves[1] == pytest.approx(0.25)  # its day is flat
    by_hand = 0.75 * RateCurve(peak_to_trough_ratio=3.0, start_s=9 * 3600.0).along(86_400.0, 0)
    assert curves[0] == pytest.approx(by_hand)


def test_requests_are_dealt_by_the_curves_of_their_minute():
    """Of 8,640 requests a day's first half is the one's and the second half the other's, to the request."""
    origins = [
        {"name": "day", "share": 0.5, "rtt_ms": "r=1", "rate_curve": ",".join(["1"] * 12 + ["0"] * 12)},
        {"name": "night", "share": 0.5, "rtt_ms": "r=1", "rate_curve": ",".join(["0"] * 12 + ["1"] * 12)},
    ]
    inputs = read_fleet({**BASE, "rate": 0.1, "days": 1, "region": [{"name": "r"}], "origin": origins})
    requests = traffic_for(inputs).split.requests
    assert requests.count == pytest.approx(8640, rel=0.05)
    assert ((requests.arrive_s >= 43_200.0) == (requests.origin == 1)).all()


def test_a_conversation_stays_at_its_origin():
    inputs = read_fleet({**BASE, "turns": 3, "think_s": 5, "region": TWO, "origin": FROM})
    requests = traffic_for(inputs).split.requests
    later = np.flatnonzero(requests.after >= 0)
    assert later.size
    assert (requests.origin[later] == requests.origin[requests.after[later]]).all()
    assert set(requests.origin.tolist()) == {0, 1}


def test_a_trace_s_column_says_the_origin(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{k},200,20,{'far' if k % 3 == 0 else 'near'}" for k in range(30)]
    path.write_text("\n".join(["arrival_s,input_tokens,output_tokens,origin", *rows, "30,200,20,"]) + "\n")
    base = {k: v for k, v in BASE.items() if k not in ("input_tokens", "output_tokens", "rate", "days")}
    answer = simulate_fleet(
        **base, trace=str(path), region=TWO, origin=[{**NEAR, "share": 1.0}, {**FROM[1], "share": 0.0}]
    )
    named = answer.run.origin[:30].tolist()
    assert named == [1 if k % 3 == 0 else 0 for k in range(30)]
    assert answer.run.origin[30] == 0  # a row without a name goes by the shares
    assert any("column origin is not used" in n for n in simulate_fleet(**base, trace=str(path)).notes)
    with pytest.raises(ScenarioError, match=r"trace: origin 'far' is no \[\[origin\]\]"):
        simulate_fleet(**base, trace=str(path), region=TWO, origin=[NEAR])


# -- answers ----------------------------------------------------------------------------------------------------------


def test_routers_are_held_against_the_nearest_region():
    """Clean electricity far away: less CO2, more milliseconds, by what two runs say."""
    regions = [{**TWO[0], "carbon_g_per_kwh": 20}, {**TWO[1], "carbon_g_per_kwh": 500}]
    more = {"region": regions, "region_router": "cleanest", "purchase": "owned", "usd_per_hour": 1.0}
    clean, near = asked(**more), asked(**{**more, "region_router": "nearest"})
    assert clean.by_region.elsewhere_frac == pytest.approx(0.3, abs=0.05)
    assert near.nearest is None
    assert clean.nearest.carbon_frac == pytest.approx(clean.carbon_g / near.carbon_g - 1.0)
    assert clean.nearest.carbon_frac < 0.0
    assert clean.nearest.cost_frac == 0.0
    assert clean.nearest.p99_ttft_s > 0.0


def test_a_lost_region_fails_over_with_a_longer_way():
    outage = [{"region": "us", "start_s": 60.0, "length_s": 1000.0}]
    answer = asked(outage=outage)
    far = answer.by_region.origins[1]
    assert far.served_in["eu"] > 0
    assert far.elsewhere_frac > 0.5
    late = answer.run.ttft_s[(answer.run.origin == 1) & (answer.run.arrive_s > 61.0)]
    assert late.min() > 0.146
    assert answer.run.fates["served"] == answer.num_sent
    assert {e.what for e in answer.run.events} >= {"region"}


def test_json_csv_and_terminal_tell_regions(tmp_path, capsys):
    fleet = tmp_path / "f.toml"
    fleet.write_text(
        'model = "llama-3.1-8b"\ndevice = "h100-sxm"\ninput_tokens = 300\noutput_tokens = 30\nrate = 2\ndays = 0.002\n'
        'cold_start_s = 20\nslo = ["ttft:1000"]\nregion_router = "weighted"\nregion_router_knob = "parts=eu:1/us:1"\n'
        '[[region]]\nplace = "westeurope"\nname = "eu"\ncarbon_g_per_kwh = 300\n'
        '[[region]]\nname = "us"\nplace = "eastus"\ncarbon_g_per_kwh = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, '
        '13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]\n[[origin]]\nplace = "uksouth"\n'
    )
    assert run(["fleet", str(fleet), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [r["name"] for r in answer["regions"]] == ["eu", "us"]
    assert answer["elsewhere_frac"] == pytest.approx(0.5, abs=0.01)
    assert answer["region_router"] == "weighted"
    assert answer["origins"][0]["served_in"].keys() == {"eu", "us"}
    assert {"eu_requests_per_s", "us_requests_per_s"} <= answer["series"].keys()
    assert answer["against_nearest"]["p99_ttft_s"] > 0.0
    assert run(["fleet", str(fleet)]) == 0
    told = capsys.readouterr().out
    assert "not served in their nearest region (weighted)" in told
    assert "Beside every request in its nearest region: " in told
    assert run(["show", "place", "uksouth"]) == 0
    assert "westeurope" in capsys.readouterr().out


def test_the_report_has_regions_and_what_the_router_changes():
    regions = [{**TWO[0], "carbon_g_per_kwh": 20}, {**TWO[1], "carbon_g_per_kwh": 500}]
    report = fleet_report(asked(region=regions, region_router="cleanest"))
    titles = [t.title for t in report.where.tables]
    assert {"Regions", "Origins"} <= set(titles)
    assert report.where.figures[0].title == "Requests/s by region"
    assert {"carbon_g", "elsewhere_frac"} <= {n.name for n in report.numbers}
    assert any("Beside every request in its nearest region: " in line for line in report.summary)
    assert "Round trips are medians" in report.limits[-1]
    assert "network to them are not simulated" in fleet_report(simulate_fleet(**BASE)).limits[-1]


def test_jobs_go_to_the_cheap_region_hours():
    """3 kWh at most 2 kW over all regions: two hours cost 30 and 10 cents in eu, 20 and 40 in us, whose site takes 1.5
    times the energy. 2 kWh at 10 cents and 1 at 30 (in us 1.5 x 20 is as much) are 50 cents; as early as possible, 2 at
    30 and 1 at 10 in eu, 70."""
    eu = ",".join(["0"] + ["0.3", "0.1"] + ["0"] * 21)
    us = ",".join(["0"] * 19 + ["0.2", "0.4"] + ["0"] * 3)
    regions = [{**TWO[0], "usd_per_kwh": eu}, {**TWO[1], "usd_per_kwh": us, "pue": 1.5}]
    more = {"region": regions, "rate": 0.01, "days": 2 / 24, "slo": []}
    answer = asked(**more, job="train=3,most=2")
    assert answer.jobs.best.usd == pytest.approx(0.5)
    assert answer.jobs.early.usd == pytest.approx(0.7)
    assert (answer.jobs.best.job_w.reshape(2, 2).sum(axis=0) <= 2000.0 + 1e-6).all()
    assert sum(answer.to_json()["job_regions"]["train"].values()) == pytest.approx(3 * 3.6e6)
    far = asked(**{**more, "region": [regions[0], {**regions[1], "pue": 1.0}]}, job="train=3,most=2")
    assert far.to_json()["job_regions"]["train"] == pytest.approx({"eu": 2 * 3.6e6, "us": 3.6e6})
    assert far.jobs.best.usd == pytest.approx(2 * 0.1 + 0.2)
    with pytest.raises(ScenarioError, match="in region us as in the others"):
        asked(**{**more, "region": [regions[0], {**TWO[1], "carbon_g_per_kwh": 3}]}, job="train=3")


# -- sizes that survive -----------------------------------------------------------------------------------------------


def test_a_fleet_that_survives_a_region_has_enough_left_in_the_others():
    """At 20 requests/s from two origins, half and half, one replica of each region is enough with room to spare; with
    a region lost the other one serves all, farther away."""
    near = [{"name": "a", "share": 0.5, "rtt_ms": "eu=10,us=90"}, {"name": "b", "share": 0.5, "rtt_ms": "eu=90,us=10"}]
    more = {**BASE, "rate": 20.0, "slo": ["p99_ttft:400"], "days": 1, "region": TWO, "origin": near}
    found = simulate_fleet(**more, survive="region")
    assert found.needed == 2
    assert found.replicas >= found.needed
    assert sum(found.by_region.values()) == found.replicas
    assert found.p99_ttft_s["during"] > found.p99_ttft_s["without"] + 0.04
    assert found.p99_ttft_s["during"] <= 0.4
    assert found.to_json()["survive"] == "region"
    one = simulate_fleet(**more, survive="replica")
    assert one.needed == 2


def test_busiest_hour_and_parts_of_regions_by_hand():
    """East peaks at 5 UTC, west at 20, with 3 to 1 of the requests: the busiest hour is east's, in which it sends
    3 x 1.5 and west 1 - 0.5 x cos(...) of the mean; eight replicas are dealt by that."""
    origins = [
        {"name": "east", "share": 0.75, "utc_offset": 9, "rtt_ms": "eu=300,us=10"},
        {"name": "west", "share": 0.25, "utc_offset": -6, "rtt_ms": "eu=10,us=300"},
    ]
    more = {**BASE, "days": 1, "rate_curve": "diurnal", "region": TWO, "origin": origins}
    tries = RegionTries(read_fleet(more), "region")
    hours = np.arange(24)
    wave = [1 + 0.5 * np.cos(2 * np.pi * (hours + 0.5 + ahead - 14) / 24) for ahead in (9, -6)]
    total = 2.0 * (0.75 * wave[0] + 0.25 * wave[1])
    assert tries.peak_requests_per_s == pytest.approx(total.max(), rel=0.01)
    at = int(total.argmax())
    east = 8 * 0.75 * wave[0][at] / (0.75 * wave[0][at] + 0.25 * wave[1][at])
    assert tries.by_region(8) == {"eu": 8 - round(east), "us": round(east)}
    assert tries.by_region(2) == {"eu": 1, "us": 1}
    zone, _ = tries.cases(4, lost=True)
    assert zone["outage"][0]["region"] == "eu"
    assert sum(p["replicas"] for p in zone["pool"]) == 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"region": TWO[:1], "origin": []}, "write another"),
        ({"pool": [{"region": "eu"}, {"name": "x", "region": "eu"}, {"region": "us"}]}, "one pool in each region"),
        ({"region": [], "origin": []}, "there are no regions"),
    ],
)
def test_losses_that_make_no_sense_are_refused(more, message):
    with pytest.raises(ScenarioError, match=message):
        asked(survive="region", **more)


# -- steady hours -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nearest", "spill-over", "cheapest", "least-loaded", "weighted"])
def test_steady_hours_of_regions_are_close_to_the_simulated_run(name):
    """Hours with as many replicas: money, energy and latencies of the run, as of a fleet without regions."""
    regions = [{**TWO[0], "usd_per_kwh": 0.3, "carbon_g_per_kwh": 100}, {**TWO[1], "usd_per_kwh": 0.1}]
    more = {"rate": 12.0, "days": 0.03, "replicas": 2, "purchase": "owned", "usd_per_hour": 1.0, "region": regions}
    answer = asked(**more, region_router=name)
    found = answer.steady
    assert found["cost_frac"] == pytest.approx(0.0, abs=0.01)
    assert found["energy_frac"] == pytest.approx(0.0, abs=0.06)
    assert found["mean_ttft_frac"] == pytest.approx(0.0, abs=0.06)
    assert found["mean_tpot_frac"] == pytest.approx(0.0, abs=0.06)
    steady = asked(**more, region_router=name, steady=True).to_json()
    assert steady["elsewhere_frac"] == pytest.approx(answer.by_region.elsewhere_frac, abs=0.06)
    rows = {r["name"]: r for r in steady["regions"]}
    assert sum(r["num_requests"] for r in rows.values()) == pytest.approx(steady["num_requests"])
    assert sum(r["rent_usd"] + r["electricity_usd"] for r in rows.values()) == pytest.approx(steady["cost_usd"])
    assert rows["us"]["carbon_g"] == 0.0


# -- what is refused --------------------------------------------------------------------------------------------------

REFUSED = [
    ({"region": TWO, "origin": []}, "nothing says where requests come from"),
    ({"region": [{}], "origin": []}, r"\[\[region\]\] 1: name is missing"),
    ({"region": [TWO[0], TWO[0]]}, "region: 'eu' is there twice"),
    ({"region": [{"name": "a,b"}], "origin": []}, "without commas"),
    ({"region": [{"place": "atlantis"}], "origin": []}, "atlantis"),
    ({"region": [{"name": "a", "latitude": 3}]}, "latitude and longitude belong together"),
    ({"region": [{"name": "a"}]}, 'round trip to region a is not known; write rtt_ms = "a=90"'),
    ({"origin": [{**FROM[0], "share": 0.7}, {**FROM[1], "share": 0.7}]}, "their shares add up to 1.4"),
    ({"origin": [{**FROM[0], "share": 0.7}, {**FROM[1], "share": 0.1}]}, "their shares add up to 0.8"),
    ({"origin": [{**NEAR, "rtt_ms": "asia=3"}]}, "there is no region 'asia'; the regions are eu, us"),
    ({"origin": [{**NEAR, "rtt_ms": "eu"}]}, "got 'eu'; write names with numbers"),
    ({"origin": [{**NEAR, "rtt_ms": "eu=5,eu=6"}]}, "'eu' is there twice"),
    ({"origin": [{**NEAR, "rtt_ms": "us=3"}]}, "us=3 is faster than light: a straight fibre takes"),
    ({"origin": [{**NEAR, "regions": "mars"}]}, "origin near: regions: there is no region 'mars'"),
    ({"origin": [{**NEAR, "utc_offset": 0.1}]}, "steps of 0.25"),
    ({"origin": [{**NEAR, "bytes_per_s": 1e6}]}, "bytes_per_s: for what"),
    ({"request_bytes": 1e6}, "request_bytes needs its uplink"),
    ({"pool": [{"name": "x"}]}, 'pool x: stands in no region; write region = "eu"'),
    ({"pool": [{"name": "x", "region": "es"}]}, "pool x: there is no region 'es'"),
    ({"pool": [{"name": "x", "region": "eu"}]}, "region us: no pool stands there"),
    ({"region": [{**TWO[0], "zones": "a,b"}, {**TWO[1], "zones": "b"}]}, "zone 'b' is in regions eu and us"),
    ({"region": [{**TWO[0], "zones": "a"}], "pool": [{"zones": "z"}]}, "zone 'z' is not in region eu"),
    ({"zones": "a"}, "zone 'a' is in regions eu and us"),
    ({"region": [{**TWO[0], "usd_per_kwh": "1,2"}, TWO[1]]}, "region eu: usd_per_kwh: got '1,2'"),
    ({"region": [{**TWO[0], "carbon_g_per_kwh": "-1"}, TWO[1]]}, "region eu: carbon_g_per_kwh"),
    ({"region": [{**TWO[0], "hours": "h.csv", "usd_per_kwh": 1}, TWO[1]]}, "hours has it already"),
    ({"region_router": "closest"}, "router between regions"),
    ({"region_router": "cleanest"}, "the carbon of region eu is missing"),
    ({"region_router": "spill-over", "region_router_knob": "full"}, "write NAME=VALUE"),
    ({"region_router": "spill-over", "region_router_knob": "full_ratio=0"}, "write more than 0"),
    ({"region_router": "weighted", "region_router_knob": "parts=mars:1"}, "no region 'mars'"),
    ({"regions": "westeurope"}, r"there are \[\[region\]\] tables already"),
    ({"origins": "uksouth"}, r"there are \[\[origin\]\] tables already"),
    ({"electricity": 0.1}, "every region has its own"),
    ({"outage": [{"start_s": 1, "length_s": 1}]}, "the zone or the region that is lost"),
    ({"outage": [{"region": "asia", "start_s": 1, "length_s": 1}]}, "there is no region 'asia'"),
    ({"share": "time"}, "models that share replicas stand in one place"),
    ({"mix": True}, "a mix rents its devices in one place"),
    ({"power_budget_w": 1e5}, "a budget of watts is of one site"),
    ({"rack": [{"name": "r", "limit_w": 1e4}]}, "rack r: pools of regions eu and us stand in it"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED, ids=lambda v: str(v)[:40])
def test_what_makes_no_sense_is_refused(more, message):
    with pytest.raises(OrreryError, match=message):
        asked(**more)


@pytest.mark.parametrize(
    "more",
    [
        {"region_router": "nearest"},
        {"origins": "uksouth"},
        {"origin": FROM},
        {"round_trips": 2},
        {"pool": [{"region": "eu"}]},
        {"faults": {"region_mtbf_s": 1e6}},
    ],
)
def test_without_regions_their_settings_are_refused(more):
    with pytest.raises(ScenarioError, match="there are no regions"):
        simulate_fleet(**BASE, **more)


def test_an_origin_that_no_region_reaches_in_time_is_told():
    answer = asked(slo=["ttft:50"], days=0.0005)
    assert any("origin far: the round trip alone is longer than the limit" in note for note in answer.notes)
