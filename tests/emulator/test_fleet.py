"""A fleet behind one endpoint: replicas start, fail and are paid for while clients ask, as ``orrery fleet`` says."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.emulator.start import ServerOptions
from orrery.emulator.start_fleet import ready_fleet
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.read import read_fleet

SCALED = {
    "rate": 12.0,
    "input_tokens": 500,
    "output_tokens": 60,
    "days": 0.0015,
    "replicas_min": 1,
    "replicas_max": 3,
    "cold_start_s": 20.0,
    "autoscaler": {"name": "hpa", "target": 6},
    "seed": 4,
}
ONE = {"prompt": "a", "max_tokens": 3}


def samples(url):
    """Name and labels -> value, of everything that is published."""
    page = httpx.get(f"{url}/metrics").text
    return {
        (s.name, *(v for k, v in sorted(s.labels.items()) if k != "model_name")): s.value
        for family in text_string_to_metric_families(page)
        for s in family.samples
    }


def total(found, name):
    """The sum of a series over all engines."""
    return sum(value for key, value in found.items() if key[0] == name)


def test_the_traffic_of_a_fleet_on_the_clock_is_served_as_the_fleet_serves_it(start_fleet, until):
    expected = simulate_fleet(model="llama-3.1-8b", device="h100-sxm", max_model_len=8192, **SCALED).run
    with start_fleet(SCALED, plays_traffic=True, speed_ratio=100.0, has_admin=True) as found:
        until(lambda: httpx.get(f"{found.url}/admin").json()["played"]["ended"] == expected.requests.count, 20.0)
        changes = [(e.what, e.replica, round(e.at_s, 6)) for e in found.pace.live.events if e.at_s < expected.end_s]
        seen = list(found.pace.meters.by_replica.values())
    assert changes == [(e.what, e.replica, round(e.at_s, 6)) for e in expected.events][: len(changes)]
    assert {what for what, *_ in changes} >= {"start", "ready"}
    times = [m["time_to_first_token_seconds"] for m in seen]
    mean_s = sum(h.total for h in times) / sum(h.cumulated[-1][1] for h in times)
    assert mean_s == pytest.approx(expected.ttft_s.mean(), rel=0.02)


def test_power_limits_are_metered_and_lower_clocks(start_fleet, until):
    """A rack that carries less than its replicas draw at rest: its rule lowers clocks as soon as it looks."""
    rack = [{"name": "a", "limit_w": 100.0, "power_cap": "everyone", "clock_ratio": 0.5}, {"name": "b"}]
    fleet = {"replicas": 2, "rack": rack, "power_reading_s": 1.0, "power_delay_s": 1.0}
    with start_fleet(fleet, speed_ratio=100.0) as found:
        until(lambda: samples(found.url)["orrery:fleet_power_clock_ratio", "rack", "a"] == 0.5)
        seen = samples(found.url)
    assert seen["orrery:fleet_power_clock_ratio", "rack", "b"] == 1.0
    assert seen["orrery:fleet_power_limit_watts", "rack", "a"] == 100.0
    each = [seen["orrery:fleet_power_watts", *key] for key in (("rack", "a"), ("rack", "b"), ("fleet", "fleet"))]
    assert each[0] + each[1] == pytest.approx(each[2])
    assert each[0] > 100.0


def test_a_client_waits_for_the_cold_start_of_the_first_replica(start_fleet):
    """From zero replicas: KEDA looks every 30 s, and a start takes 30 s of the service's time, 0.3 s here."""
    fleet = {"replicas_min": 0, "replicas_max": 2, "cold_start_s": 30.0, "autoscaler": {"name": "keda-queue"}}
    with start_fleet(fleet, speed_ratio=100.0) as found:
        before = samples(found.url)
        assert not any(name == "vllm:num_requests_running" for name, *_ in before)
        assert before["orrery:fleet_replicas", "pool", "serving"] == 0.0
        got = httpx.post(f"{found.url}/v1/completions", json=ONE, timeout=20)
        after = samples(found.url)
    assert got.status_code == 200
    assert 30.0 < after["vllm:time_to_first_token_seconds_sum", "0"] < 61.0
    assert after["orrery:fleet_replicas", "pool", "serving"] == 1.0
    assert after["orrery:fleet_cost_usd_total", "pool"] > 0.0
    assert after["orrery:fleet_replica_seconds_total", "pool"] > 30.0


def test_a_killed_replica_is_followed_by_another_after_its_cold_start(start_fleet, until):
    fleet = {"replicas_min": 1, "replicas_max": 2, "cold_start_s": 50.0}
    with start_fleet(fleet, speed_ratio=100.0, has_admin=True) as found:
        change = httpx.post(f"{found.url}/admin/replicas", json={"replica": 0, "action": "kill"}).json()
        assert [r["state"] for r in change["replicas"]] == ["lost", "starting"]
        got = httpx.post(f"{found.url}/v1/completions", json=ONE, timeout=20)
        assert got.status_code == 200
        httpx.post(f"{found.url}/admin/replicas", json={"replica": 0, "action": "revive"})
        until(lambda: [r["state"] for r in httpx.get(f"{found.url}/admin").json()["replicas"]] == ["off", "serving"])
        assert samples(found.url)["vllm:prompt_tokens_total", "1"] == 1.0


def test_a_tenant_beyond_its_budget_is_turned_away(start_fleet):
    fleet = {"tenant": [{"name": "paid"}, {"name": "free", "share": 0.5, "budget": 0.001, "burst": 2}]}
    with start_fleet(fleet, speed_ratio=20.0) as found, httpx.Client(base_url=found.url) as http:
        free = [http.post("/v1/completions", json=ONE | {"user": "free"}) for _ in range(3)]
        paid = [http.post("/v1/completions", json=ONE | {"user": "paid"}) for _ in range(3)]
    assert [r.status_code for r in free] == [200, 200, 429]
    assert "free" in free[-1].json()["error"]["message"]
    assert int(free[-1].headers["retry-after"]) == 1000
    assert {r.status_code for r in paid} == {200}


def test_a_full_queue_sheds(start_fleet):
    fleet = {"max_queue": 1, "max_num_seqs": 1}
    with start_fleet(fleet, speed_ratio=1.0) as found:
        got = httpx.post(f"{found.url}/v1/completions", json={"prompt": ["a"] * 8, "max_tokens": 50}, timeout=20)
    assert got.status_code == 429
    assert "queue" in got.json()["error"]["message"]


def test_what_cannot_be_served_is_refused():
    def ask(more, **options):
        return ready_fleet(
            read_fleet({"model": "llama-3.1-8b", "device": "h100-sxm", **more}), ServerOptions(), **options
        )

    for name, value in (("steady", True), ("survive", "zone"), ("job", ["train=4"]), ("api_price", "in=1,out=2")):
        with pytest.raises(ScenarioError, match=f"{name}: a running fleet has no use"):
            ask({name: value})
    with pytest.raises(ScenarioError, match="needs a model"):
        ready_fleet(read_fleet({"device": "h100-sxm"}), ServerOptions())
    with pytest.raises(ScenarioError, match="rate: is missing"):
        ask({"days": 1, "input_tokens": 10, "output_tokens": 10}, plays_traffic=True)
    spread = {"rate": 1, "input_tokens": 500, "input_tokens_std": 900, "output_tokens": 9, "num_requests": 99}
    with pytest.raises(ScenarioError, match="longest request"):
        ask({**spread, "max_model_len": 1000}, plays_traffic=True)
    assert "rate: not played" in " ".join(ask({"rate": 1, "input_tokens": 10, "output_tokens": 10}).notes)


def test_the_command_says_what_is_of_a_fleet(capsys, tmp_path):
    assert run(["emulate", "--model", "llama-3.1-8b", "--device", "h100-sxm", "--play-traffic", "--port", "0"]) == 2
    assert "are of a fleet" in capsys.readouterr().err
    file = tmp_path / "two.toml"
    file.write_text('device = "h100-sxm"\n[[service]]\nmodel = "llama-3.1-8b"\n')
    assert run(["emulate", str(file), "--port", "0"]) == 2
    assert "[[service]]" in capsys.readouterr().err
    assert run(["emulate", str(file), "--scenario", str(file), "--port", "0"]) == 2
    assert "its own file" in capsys.readouterr().err


PLACED = {
    "rate": 6.0,
    "input_tokens": 300,
    "output_tokens": 30,
    "days": 0.0008,
    "cold_start_s": 20.0,
    "seed": 4,
    "regions": "westeurope,eastus",
    "origins": "uksouth=0.5,westus=0.5",
}


def test_a_fleet_in_regions_is_served_as_the_fleet_serves_it(start_fleet, until):
    """Every request from its origin, in its region, its first token after the way there and back."""
    expected = simulate_fleet(model="llama-3.1-8b", device="h100-sxm", max_model_len=8192, **PLACED).run
    with start_fleet(PLACED, plays_traffic=True, speed_ratio=50.0, has_admin=True) as found:
        until(lambda: httpx.get(f"{found.url}/admin").json()["played"]["ended"] == expected.requests.count, 20.0)
        replicas = httpx.get(f"{found.url}/admin").json()["replicas"]
        arrived = found.pace.live._live.world.regions.arrived.tolist()
        seen = list(found.pace.meters.by_replica.values())
    assert arrived == [int((expected.outcome.region == k).sum()) for k in range(2)]
    assert [r["region"] for r in replicas] == ["westeurope", "eastus"]
    times = [m["time_to_first_token_seconds"] for m in seen]
    mean_s = sum(h.total for h in times) / sum(h.cumulated[-1][1] for h in times)
    assert mean_s == pytest.approx(expected.ttft_s.mean(), rel=0.02)


def test_a_header_names_the_origin(start_fleet):
    """uksouth, the first origin, is 11 ms from westeurope and the default; westus 67 ms from eastus."""
    with start_fleet({k: v for k, v in PLACED.items() if k not in ("rate", "days")}) as found:
        ask = {"prompt": "a", "max_tokens": 1}
        for headers in ({}, {"X-Orrery-Origin": "westus"}):
            assert httpx.post(f"{found.url}/v1/completions", json=ask, headers=headers).status_code == 200
        sums = [m["time_to_first_token_seconds"].total for _, m in sorted(found.pace.meters.by_replica.items())]
        assert sums[1] - sums[0] == pytest.approx(0.067 - 0.011, abs=1e-6)
        wrong = httpx.post(f"{found.url}/v1/completions", json=ask, headers={"X-Orrery-Origin": "mars"})
        assert wrong.status_code == 400
        assert "uksouth, westus" in wrong.text
        scale = f"{found.url}/apis/apps/v1/namespaces/default/deployments/orrery-eastus/scale"
        assert httpx.get(scale).json()["spec"]["replicas"] == 1
        assert "orrery-eastus and orrery-westeurope" in httpx.get(scale.replace("-eastus", "")).text


def test_without_regions_an_origin_is_refused(start_fleet):
    with start_fleet({}) as found:
        wrong = httpx.post(f"{found.url}/v1/completions", json=ONE, headers={"X-Orrery-Origin": "uksouth"})
        assert wrong.status_code == 400
        assert "stands in no regions" in wrong.text
