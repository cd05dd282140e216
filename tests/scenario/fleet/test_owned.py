"""Devices and clusters of one's own: capital, watts and dollars by hand, and what contradicts itself."""

import json

import pytest

from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.cli.main import run
from orrery.fleet.money import S_PER_MONTH
from orrery.scenario.fleet.ask import simulate_fleet

CLUSTER = {
    "name": "ours",
    "device": "h100-sxm",
    "devices": 60,
    "device_usd": 30_000,
    "host_usd": 50_000,
    "host_w": 3000,
    "switch_ports": 4,
    "switch_usd": 1000,
    "switch_w": 100,
}
TERMS = {"life_months": 12, "upkeep_frac": 0.5, "pue": 2.0, "electricity": 0.36}
SERVED = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 500,
    "output_tokens": 60,
    "rate": 5,
    "days": 0.005,
    "replicas": 2,
    "change": False,
}
GRAPH = {"stage": [{"name": "a", "model": "llama-3.1-8b", "input_tokens": 500, "output_tokens": 50}]}
PRICED = {"purchase": "owned", "device_buy_usd": "h100-sxm=36000", "life_months": 10, "upkeep_frac": 0.5}


def test_a_cluster_by_hand():
    """60 devices in 8 machines of 8; 8 ports on switches of 4 ports: 4 leaves of 2 and 2 above them."""
    answer = simulate_fleet(owned={**TERMS, "cluster": [CLUSTER]})
    (one,) = answer.to_json()["clusters"]
    assert (one["num_nodes"], one["num_switches"]) == (8, 6)
    assert one["capital_usd"] == 64 * 30_000 + 8 * 50_000 + 6 * 1000
    watts = 8 * get_device("h100-sxm").power_limit_w + 3000
    assert (one["node_power_w"], one["power_w"]) == (watts, 8 * watts + 600)
    capital = one["capital_usd"] * 1.5 / (12 * S_PER_MONTH) * 3600
    power = one["power_w"] / 1000 * 2.0 * 0.36
    assert one["usd_per_hour"] == pytest.approx(capital + power)
    assert one["device_usd_per_hour"] == pytest.approx((capital + power) / 60)


def test_a_cluster_saves_nothing_of_itself_and_less_the_dearer_its_devices():
    answer = simulate_fleet(owned={"cluster": [CLUSTER, {**CLUSTER, "name": "same"}]}).to_json()
    (compared,) = answer["compared"]
    assert all(compared[f"{n}_saved_frac"] == 0.0 for n in ("capital", "power", "node_power", "usd"))
    saved = [point["capital_saved_frac"] for point in compared["curve"]]
    assert saved == sorted(saved, reverse=True)
    assert next(p for p in compared["curve"] if p["device_usd"] == 30_000)["capital_saved_frac"] == 0.0


def test_without_a_network_no_switch_is_bought_and_two_networks_take_half_the_ports_each():
    """8 ports on each of two networks: the 6 switches of 8 ports each, and one that joins them."""
    none = {**CLUSTER, "node_ports": 0, "switch_usd": None}
    two = {**CLUSTER, "name": "two", "node_ports": 2, "networks": 2, "joining_switches": 1}
    found = simulate_fleet(owned={"cluster": [none, two]}).to_json()["clusters"]
    assert [c["num_switches"] for c in found] == [0, 13]


def test_the_command_reads_a_file(tmp_path, capsys):
    file = tmp_path / "clusters.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in CLUSTER.items()]
    file.write_text("\n".join(["life_months = 12", "[[cluster]]", *lines]))
    assert run(["fleet", "--owned", str(file), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain == simulate_fleet(owned={"life_months": 12, "cluster": [CLUSTER]}).to_json()
    assert run(["fleet", "--owned", str(file), "--pue", "2"]) == 0
    assert "$/device-hour" in capsys.readouterr().out


def test_an_owned_pool_costs_its_price_and_upkeep_over_its_life():
    """Two devices for 432 s, at 36,000 dollars and half as much again over ten months."""
    found = simulate_fleet(**SERVED, **PRICED)
    assert found.run.cost_usd == pytest.approx(2 * found.run.end_s * 36_000 * 1.5 / (10 * S_PER_MONTH))
    other = simulate_fleet(**SERVED, device_usd_per_hour="h100-sxm=3.6")
    assert other.run.cost_usd == pytest.approx(2 * other.run.end_s * 3.6 / 3600)


def test_a_graph_on_owned_devices_costs_their_price_and_their_watts():
    device = get_device("h100-sxm")
    own = {**TERMS, "device_buy_usd": "h100-sxm=36000"}
    found = simulate_fleet(graph=GRAPH, device="h100-sxm", **own)
    capital = 36_000 * 1.5 / (12 * S_PER_MONTH)
    power = (device.power_limit_w + device.host_power_w) * 2.0 * 0.36 / 3.6e6
    assert found.usd_per_s["h100-sxm"] == pytest.approx(capital + power)
    rented = simulate_fleet(graph=GRAPH, device="h100-sxm", device_usd_per_hour="h100-sxm=3.6")
    assert rented.usd_per_s["h100-sxm"] == pytest.approx(3.6 / 3600)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"owned": {}}, r"write \[\[cluster\]\]"),
        ({"owned": {"cluster": [{"name": "a"}]}}, "write device"),
        ({"owned": {"cluster": [{**CLUSTER, "host_usd": None}]}}, "prices are missing"),
        ({"owned": {"cluster": [{**CLUSTER, "node_usd": 1}]}}, "leave out device_usd"),
        ({"owned": {"cluster": [{**CLUSTER, "switch_usd": None}]}}, "switch_usd is missing"),
        ({"owned": {"cluster": [CLUSTER, CLUSTER]}}, "'ours' is there twice"),
        ({"owned": {"cluster": [{**CLUSTER, "switch_layers": 4}]}}, "switch_layers"),
        ({"owned": {"cluster": [{**CLUSTER, "devices": 1_000_000}]}}, "more than two layers"),
        ({"owned": {"cluster": [CLUSTER]}, "rate": 4}, "rate: is not about clusters"),
        ({**SERVED, "device_buy_usd": "h100-sxm=36000"}, 'write purchase = "owned"'),
        ({**SERVED, **PRICED, "device_buy_usd": "l4=2500"}, "l4 is no device that is owned"),
        ({**SERVED, **PRICED, "device_buy_usd": "h100-sxm"}, "write DEVICE=USD"),
        ({**SERVED, "life_months": 10}, "nothing is bought"),
        ({"graph": GRAPH, "device": "h100-sxm", "pue": 1.2}, "a rent contains electricity"),
        ({"graph": GRAPH, "device": "h100-sxm", "upkeep_frac": 0.1}, "nothing is bought"),
    ],
)
def test_what_cannot_be_owned_is_refused(asked, words):
    with pytest.raises(OrreryError, match=words):
        simulate_fleet(**asked)
