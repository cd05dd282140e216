"""A fleet from its file: figures that add up, and one clear message for each mistake."""

import json

import numpy as np
import pytest
import tomli_w

from orrery.base.errors import OrreryError
from orrery.catalog.faults import fault_facts
from orrery.cli.main import run
from orrery.fleet.service.disruptions import Disruptions, Exposure, drawn
from orrery.reports.fleet_services import services_report
from orrery.scenario.amounts import amount
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_fleet import BLOCKS, FLEET_SETTINGS
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.blocks import CLASSES, FleetTop
from orrery.scenario.fleet.jobs import peak_power_w
from orrery.scenario.simulate import simulate

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "rate": 20.0}
SCALED = {"replicas_min": 1, "replicas_max": 4, "autoscaler": "hpa", "cold_start_s": 30.0}


def test_a_fleet_of_one_replica_is_simulate():
    one, whole = simulate_fleet(**LOAD, num_requests=500, slo=["ttft:1000"]), simulate(**LOAD, num_requests=500)
    assert np.array_equal(one.run.outcome.finish_s, whole.simulated.finish_s)
    plain = one.to_json()
    assert plain["ttft_s"]["mean"] * 1e3 == pytest.approx(whole.to_json()["mean_ttft_ms"])
    assert plain["energy_j"] == pytest.approx(whole.simulated.energy_j, rel=1e-3)


def test_figures_add_up():
    answer = simulate_fleet(
        **LOAD, **SCALED, days=0.03, rate_curve="diurnal", slo=["p99_ttft:1000", "tpot:50"], electricity=0.1
    )
    plain = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    fates = sum(plain[f"num_{name}"] for name in ("served", "refused", "failed", "unfinished", "shed"))
    assert fates == plain["num_requests"]
    assert plain["cost_usd"] == pytest.approx(sum(p["cost_usd"] for p in plain["pools"]) + plain["electricity_usd"])
    assert plain["electricity_usd"] == pytest.approx((plain["energy_j"] + plain["host_energy_j"]) / 3.6e6 * 0.1)
    assert sum(plain["hurt"].values()) == round((1 - plain["attained_frac"]) * plain["num_requests"])
    series = plain["series"]
    assert len({len(v) for v in series.values()}) == 1
    width_s = series["start_s"][1]
    assert sum(series["arrivals_per_s"]) * width_s == pytest.approx(plain["num_requests"], rel=0.02)
    energy_j = sum(series["power_w"]) * width_s
    assert energy_j == pytest.approx(plain["energy_j"] + plain["host_energy_j"], rel=0.03)


def test_a_committed_pool_costs_the_same_whatever_runs():
    pools = [{"name": "a", "purchase": "reserved", "replicas_min": 0, "replicas_max": 3, "usd_per_hour": 2.0}]
    answer = simulate_fleet(**LOAD, days=0.02, autoscaler="hpa", cold_start_s=5, pool=pools)
    assert answer.cost_usd == pytest.approx(3 * 2.0 / 3600 * answer.run.end_s)


def test_pools_fill_in_their_order_and_may_differ():
    pools = [
        {"name": "own", "purchase": "owned", "replicas_min": 1, "replicas_max": 1, "usd_per_hour": 1.0},
        {"name": "big", "device": "h200-sxm", "tp": 2, "replicas_min": 0, "replicas_max": 2},
    ]
    answer = simulate_fleet(
        **{**LOAD, "rate": 120.0}, days=0.01, autoscaler="hpa", autoscaler_knob="target=20", pool=pools
    )
    devices = [p["device"] for p in answer.to_json()["pools"]]
    assert devices == ["h100-sxm", "h200-sxm"]
    assert answer.to_json()["pools"][1]["peak_replicas"] > 0
    assert answer.run.fates["unfinished"] == 0


def test_a_model_that_does_not_fit_is_infeasible():
    assert isinstance(
        simulate_fleet(model="llama-3.1-405b", device="h100-sxm", rate=1, input_tokens=9, output_tokens=9),
        InfeasibleAnswer,
    )


MISTAKES = (
    ({"concurrency": 4, "rate": None}, "concurrency: a fleet takes rate or trace"),
    ({"replicas_min": 3, "replicas_max": 2}, "replicas_min = 3 and replicas_max = 2 exclude each other"),
    ({"replicas": 2, "replicas_max": 4}, "keep one of both"),
    ({"rate_curve": "diurnal"}, "days = 1"),
    ({"rate_curve": "1,2", "days": 1}, "24 .a day. or 168"),
    ({"rate_curve": "round", "days": 1}, "flat, diurnal"),
    ({"peak_hour": 3, "days": 0.1}, "diurnal"),
    ({"burst_ratio": 3, "days": 0.1}, "no bursts"),
    ({"autoscaler": "hpaa"}, "Did you mean 'hpa'"),
    ({"autoscaler_knob": "target=3"}, "no autoscaler"),
    ({"autoscaler": {"target": 3}}, "name is missing"),
    ({"purchase": "lease"}, "owned, reserved, on-demand, spot"),
    ({"cold_start_s": "90 miles"}, "cold_start_s: got '90 miles'"),
    ({"days": -1}, "days: got -1"),
    ({"device": "cloud-tpu-edge"}, "device"),
    ({"pools": [{"name": "a"}]}, "There is no table 'pools' in a fleet; did you mean 'pool'"),
    ({"pool": {"name": "a"}}, r"write it as \[\[pool\]\]"),
    ({"faults": [{"device_mtbf_s": 1}]}, r"write it as \[faults\]"),
    ({"faults": {"device_mtbf": 1}}, "device_mtbf_s"),
    ({"faults": {"spot_mtbi_s": 100}}, "no pool is spot"),
    ({"outage": [{"zone": "a"}]}, "start_s is missing"),
    ({"outage": [{"zone": "x", "start_s": 1, "length_s": 1}]}, "no zone 'x'"),
    ({"pool": [{"name": "a"}, {"name": "a"}]}, "'a' is there twice"),
    ({"pool": [{"name": "a", "tpp": 2}]}, "tp"),
    ({"pool": [{"name": "a"}, {"name": "b", "model": "llama-3.2-1b"}]}, "another model"),
    ({"tenant": [{"name": "a", "share": 0.4}]}, "add up to 0.4"),
    ({"tenant": [{"name": "a", "share": 1.0}, {"name": "b"}]}, "nothing is left"),
    ({"replica_min": 2}, "replicas_min"),
    ({"days": 400, "rate": 1000}, "fewer days"),
    ({"days": 1, "num_requests": 5}, "num_requests"),
)


@pytest.mark.parametrize(("wrong", "message"), MISTAKES)
def test_every_mistake_has_one_message(wrong, message):
    with pytest.raises(OrreryError, match=message) as caught:
        simulate_fleet(
            **{**LOAD, "num_requests": 10 if "days" not in wrong and wrong.get("rate_curve") is None else None} | wrong
        )
    assert len(str(caught.value).splitlines()) <= 2


def test_a_trace_out_of_order_or_a_price_that_is_missing_is_one_message(tmp_path):
    device = {k: v for k, v in LOAD.items() if k not in ("input_tokens", "output_tokens", "rate")}
    late = tmp_path / "t.csv"
    late.write_text("arrival_s,input_tokens,output_tokens\n5,10,10\nx,10,10\n")
    with pytest.raises(OrreryError, match="line 3"):
        simulate_fleet(**device, trace=str(late))
    late.write_text("arrival_s,input_tokens,output_tokens\n5,10,10\n3,20,10\n9,30,10\n")
    answer = simulate_fleet(**device, trace=str(late))
    assert "t.csv: 1 of 3 rows come before the one above them; sorted by arrival" in answer.notes
    assert answer.run.requests.input_tokens.tolist() == [20, 10, 30]
    unpriced = {**LOAD, "device": "a100-pcie-40gb", "days": 0.001}
    with pytest.raises(OrreryError, match="no price of a100-pcie-40gb is known; write usd_per_hour"):
        simulate_fleet(**unpriced)
    assert simulate_fleet(**unpriced, usd_per_hour=1.5).cost_usd > 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"pool": []}, r"pool: is empty; write a \[\[pool\]\]"),
        ({"pool": [{"name": "a", "replica_max": 3}]}, "did you mean 'replicas_max'"),
        ({"outage": [{"zone": "x", "start_s": 1, "length_s": 5}]}, "no pool says its zone"),
        ({"outage": [{"zone": "x", "start_s": 1, "length_s": 5}], "zones": "a,b", "replicas": 2}, "have a, b"),
        ({"power_budget_w": "40 horses"}, "write a number"),
    ],
)
def test_what_a_user_mistypes_says_what_to_write(more, words):
    with pytest.raises(OrreryError, match=words):
        simulate_fleet(**{**LOAD, "days": 0.001} | more)


def test_an_autoscaler_without_a_range_says_that_it_decides_nothing():
    fixed = {**LOAD, "days": 0.001, "autoscaler": "hpa"}
    assert any("hpa has nothing to decide" in note for note in simulate_fleet(**fixed, replicas=2).notes)
    scaled = simulate_fleet(**fixed, replicas_min=1, replicas_max=2, cold_start_s=5)
    assert not any("nothing to decide" in note for note in scaled.notes)


def test_watts_have_units():
    assert amount("40 kW", "limit_w") == 40_000.0
    assert amount("1.5MW", "power_budget_w") == 1.5e6
    assert amount("40 kW", "limit_s") is None


def test_blocks_and_their_classes_name_the_same_keys():
    assert set(BLOCKS) == set(CLASSES)
    for name, settings in BLOCKS.items():
        assert {s.name for s in settings} == set(CLASSES[name].model_fields), name
    assert {s.name for s in FLEET_SETTINGS} | {"name"} == set(FleetTop.model_fields)


def test_the_command_prints_writes_and_refuses(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.toml").write_text(
        'model = "llama-3.1-8b"\ndevice = "h100-sxm"\nrate = 5\ninput_tokens = 100\noutput_tokens = 20\n'
        'days = 0.005\n[autoscaler]\nname = "hpa"\n'
    )
    assert run(["fleet", "f.toml", "--replicas-max", "2", "--out", "a.svg", "--out", "a.csv", "--out", "a.json"]) == 0
    printed = capsys.readouterr().out
    assert "requests" in printed
    assert "replicas" in printed
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    rows = (tmp_path / "a.csv").read_text().splitlines()
    assert rows[0].startswith("start_s,arrivals_per_s")
    assert json.loads((tmp_path / "a.json").read_text())["num_unfinished"] == 0
    assert run(["fleet", "f.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pools"][0]["name"] == "pool"
    assert run(["fleet", "f.toml", "--csv"]) == 0
    assert run(["fleet", "f.toml", "--out", "a.png"]) == 2
    assert run(["fleet", "missing.toml"]) == 2


WEEK = {
    **LOAD,
    "rate": 60.0,
    "days": 7,
    "rate_curve": "diurnal",
    "replicas_min": 1,
    "replicas_max": 8,
    "autoscaler": "hpa",
}


def test_steady_hours_add_up_and_follow_the_rate():
    week = simulate_fleet(**WEEK, steady=True)
    assert len(week.hours) == 168
    assert week.num_requests == pytest.approx(60.0 * 7 * 86_400, rel=1e-3)
    assert week.cost_usd == pytest.approx(sum(h.usd_per_s * 3600 for h in week.hours))
    busiest = max(week.hours, key=lambda h: h.rate_requests_per_s)
    quietest = min(week.hours, key=lambda h: h.rate_requests_per_s)
    assert busiest.num_replicas > quietest.num_replicas
    json.dumps(week.to_json(), allow_nan=False)


def test_a_flat_steady_day_is_near_the_simulated_one():
    answer = simulate_fleet(**{**LOAD, "rate": 15.0}, days=0.05, replicas=1, slo=["ttft:500"])
    assert answer.steady["cost_frac"] == pytest.approx(0.0, abs=0.01)
    assert answer.steady["energy_frac"] == pytest.approx(0.0, abs=0.15)
    assert answer.steady["mean_tpot_frac"] == pytest.approx(0.0, abs=0.15)
    assert answer.regret.regret_frac == pytest.approx(0.0, abs=0.03)  # one replica is needed, one runs


@pytest.mark.parametrize(("rate", "replicas"), [(1.0, 3), (3.0, 4)])
def test_steady_power_is_that_of_replicas_which_share_few_steps(rate, replicas):
    few = {**LOAD, "input_tokens": 1000, "output_tokens": 200, "rate": rate}
    answer = simulate_fleet(**few, days=0.1 / rate, replicas=replicas, change=False)
    assert answer.steady["energy_frac"] == pytest.approx(0.0, abs=0.03)


def test_the_smallest_change_is_the_fewest_replicas_more():
    busy = {**LOAD, "rate": 150.0, "days": 0.01, "slo": ["p99_ttft:400"]}
    answer = simulate_fleet(**busy, replicas=1, change=True)
    assert answer.is_met is False
    more = answer.change.settings["replicas_min"]
    assert simulate_fleet(**busy, replicas=more).is_met
    assert not simulate_fleet(**busy, replicas=more - 1, change=False).is_met
    assert answer.change.added_usd > 0


def test_a_fleet_that_survives_a_zone_has_enough_left():
    load = LOAD | {"device": "l4", "rate": 12.0, "slo": ["p99_ttft:1000"], "cold_start_s": 60}
    found = simulate_fleet(**load, zones="a,b", survive="zone")
    assert found.needed > 1
    assert found.replicas >= 2 * found.needed - 1  # half of them are lost
    assert found.attained["p99_ttft"] >= 0.99
    one = simulate_fleet(**load, survive="replica")
    assert one.needed <= one.replicas <= found.replicas
    assert one.spare <= 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"survive": "zone"}, "an SLO"),
        ({"survive": "zone", "slo": ["ttft:900"]}, "in one zone"),
        ({"survive": "row", "slo": ["ttft:900"]}, "zone or replica"),
        ({"steady": True}, "days = 7"),
    ],
)
def test_questions_that_lack_something_say_what(wrong, message):
    with pytest.raises(OrreryError, match=message):
        simulate_fleet(**LOAD, **wrong)


def test_steady_and_survival_in_the_terminal(capsys, tmp_path):
    words = ["--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "500", "--output-tokens", "60"]
    assert run(["fleet", *words, "--rate", "50", "--days", "3", "--steady", "--rate-curve", "diurnal"]) == 0
    assert "requests/s" in capsys.readouterr().out
    more = ["--rate", "10", "--survive", "replica", "--slo", "p99_ttft:5000", "--out", str(tmp_path / "a.json")]
    assert run(["fleet", *words, *more]) == 0
    assert "still do while one replica is lost" in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "a.json").read_text())["spare"] >= 0
    assert run(["fleet", *words, *more, "--csv"]) == 2


def test_several_services_are_each_alone_and_add_up(tmp_path, capsys, monkeypatch):
    shared = {"device": "h100-sxm", "days": 0.005, "input_tokens": 200, "output_tokens": 30, "slo": ["ttft:900"]}
    tables = [{"name": "chat", "model": "llama-3.1-8b", "rate": 10.0}, {"model": "llama-3.2-1b", "rate": 30.0}]
    found = simulate_fleet(**shared, service=tables)
    alone = simulate_fleet(**shared, model="llama-3.1-8b", rate=10.0)
    assert list(found.services) == ["chat", "service 2"]
    assert np.array_equal(found.services["chat"].run.outcome.finish_s, alone.run.outcome.finish_s)
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["cost_usd"] == pytest.approx(sum(s["cost_usd"] for s in plain["services"].values()))
    assert plain["slo_is_met"] is True
    with pytest.raises(OrreryError, match="'a' is there twice"):
        simulate_fleet(**shared, service=[{**tables[0], "name": "a"}, {**tables[1], "name": "a"}])
    with pytest.raises(OrreryError, match="leave out"):
        simulate_fleet(**shared, service=tables, steady=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.toml").write_text(
        'device = "h100-sxm"\ndays = 0.002\ninput_tokens = 50\noutput_tokens = 9\nrate = 3\nmodel = "llama-3.2-1b"\n'
        '[[service]]\nname = "a"\n[service.autoscaler]\nname = "hpa"\n[[service]]\nname = "b"\nrate = 6\n'
    )
    assert run(["fleet", "f.toml", "--out", "a.json"]) == 0
    assert "All services:" in capsys.readouterr().out
    assert set(json.loads((tmp_path / "a.json").read_text())["services"]) == {"a", "b"}


def test_published_rates_of_failures():
    # 16,384 devices of eight a node for 54 days: 268, 46 and 42 interruptions; 5 % in 30 days of a spot replica
    device_s = 16_384 * 54 * 86_400
    law = simulate_fleet(**LOAD, days=0.001, fault_rates="published", faults={"repair_s": 60.0}).run.setup.disruptions
    assert law.device_mtbf_s == pytest.approx(device_s / 268)
    assert law.node_mtbf_s == pytest.approx(device_s / 8 / 46)
    assert law.link_mtbf_s == pytest.approx(device_s / 42)
    assert (law.repair_s, law.spot_mtbi_s) == (60.0, float("inf"))
    spot = simulate_fleet(**LOAD, days=0.001, fault_rates="published", purchase="spot", faults={"node_mtbf_s": 1e9})
    law = spot.run.setup.disruptions
    assert 1 - np.exp(-30 * 86_400 / law.spot_mtbi_s) == pytest.approx(0.05)
    assert (law.node_mtbf_s, law.spot_notice_s) == (1e9, 120.0)
    assert any(note.startswith("fault_rates: device_mtbf_s") for note in spot.notes)
    with pytest.raises(OrreryError, match="write published"):
        simulate_fleet(**LOAD, days=0.001, fault_rates="llama")


def test_causes_of_the_published_interruptions_add_up():
    count = {name: fact.value for name, fact in fault_facts().items()}
    assert sum(count[f"num_{of}_interruptions"] for of in ("device", "node", "link", "software")) == 419


def test_a_link_is_of_replicas_over_several_nodes():
    law = Disruptions(link_mtbf_s=100.0)
    inside, across = (Exposure(num_devices=8, num_nodes=n, is_spot=False, zone="") for n in (1, 2))
    found = drawn(law, [inside, across], 1e5, seed=0)
    assert {(d.replica, d.cause) for d in found} == {(1, "link")}
    assert len(found) == pytest.approx(8 * 1e5 / 100.0, rel=0.05)  # eight links, a failure each 100 s


SERVICES = {
    "device": "h100-sxm",
    "days": 0.004,
    "cold_start_s": 60,
    "service": [
        {"name": n, "model": m, "rate": r, "input_tokens": 500, "output_tokens": 60, "slo": [f"p99_ttft:{limit}"]}
        for n, m, r, limit in (("chat", "llama-3.1-8b", 6, 5000), ("drafts", "qwen3-8b", 2, 1))
    ],
}


def test_services_draw_at_once_what_they_draw_together():
    """The same service twice, with the same requests, draws twice as much; of different ones the sum is at most that of
    the peaks, and at least the higher one with the other's idle replica."""
    asked = {k: v for k, v in SERVICES["service"][0].items() if k != "name"}
    twice = simulate_fleet(**{**SERVICES, "service": [{**asked, "name": n} for n in "ab"]})
    assert twice.peak_power_w == pytest.approx(2.0 * peak_power_w(twice.services["a"].run))
    apart = simulate_fleet(**SERVICES)
    peaks = [peak_power_w(a.run) for a in apart.services.values()]
    idle_w = apart.services["chat"].run.setup.terms[0].idle_power_w
    assert max(peaks) + idle_w <= apart.peak_power_w <= sum(peaks)
    assert apart.to_json()["peak_power_w"] == apart.peak_power_w
    shared = simulate_fleet(**SERVICES, share="time")
    assert shared.peak_power_w == peak_power_w(shared.run)


def test_a_report_of_several_services_has_all_of_them_and_each():
    apart = simulate_fleet(**SERVICES)
    report = services_report(apart)
    assert report.title.startswith("Serving chat and drafts")
    assert report.headline.startswith("drafts misses an SLO")
    assert report.numbers[0].value == pytest.approx(sum(a.cost_usd for a in apart.services.values()))
    tables = {t.title: t.rows for t in report.where.tables}
    assert [row[:2] for row in tables["Services"]] == [("chat", "meta-llama/Llama-3.1-8B"), ("drafts", "Qwen/Qwen3-8B")]
    assert [row[:3] for row in tables["SLOs"]] == [("chat", "p99 ttft", "met"), ("drafts", "p99 ttft", "missed")]
    assert all(f.summary.endswith("a line for each service.") for f in report.where.figures)
    assert [s["name"] for s in report.settings["service"]] == ["chat", "drafts"]


def test_a_report_of_shared_replicas_draws_them_once_and_says_who_computed(tmp_path):
    path = tmp_path / "shared.toml"
    path.write_text(tomli_w.dumps(SERVICES))
    page = tmp_path / "shared.html"
    assert run(["fleet", str(path), "--share", "time", "--report", str(page)]) == 0
    text = page.read_text()
    assert text.count("of all services.") == 2  # replicas and queue
    assert "All stand on the same replicas, which computed for chat" in text


def test_a_report_of_a_mix_lists_what_is_rented():
    asked = {k: v for k, v in SERVICES["service"][0].items() if k not in ("name", "slo")}
    mixed = simulate_fleet(**asked, device="l4,h100-sxm", days=0.003, slo=["tpot:100"], mix=True)
    rows = {t.title: t.rows for t in services_report(mixed).where.tables}["Rented replicas"]
    assert [(row[1], row[3]) for row in rows] == [(r["device"], str(r["replicas"])) for r in mixed.rows]


def test_a_report_says_what_the_answer_says(tmp_path, capsys):
    path, flags = tmp_path / "day.html", [f"--{k.replace('_', '-')}={v}" for k, v in (LOAD | SCALED).items()]
    path.write_text("of yesterday")  # an older report is written over
    assert run(["fleet", *flags, "--days", "0.01", "--slo", "p99_ttft:1000", "--report", str(path), "--json"]) == 0
    plain, page = json.loads(capsys.readouterr().out), path.read_text()
    assert page.count("<figure") == 6
    assert f"of {plain['num_requests']:,} requests were served" in page.replace("\u00a0", " ")
    assert ("Every SLO is met" in page) == plain["slo_is_met"]
    for bad in (["--report", str(tmp_path / "day.txt")], ["--steady", "--report", str(path)]):
        assert run(["fleet", *flags, "--days", "0.01", *bad]) != 0
