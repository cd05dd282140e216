"""Prices and carbon of a fleet's power by the hour, against figures worked out by hand."""

import json

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.fleet.ask import simulate_fleet

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "rate": 1.0}
OWNED = {**LOAD, "purchase": "owned", "usd_per_hour": 1.0}
J_PER_KWH = 3.6e6


@pytest.fixture
def table(tmp_path):
    def written(*rows, header="usd_per_kwh,carbon_g_per_kwh"):
        path = tmp_path / "hours.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return str(path)

    return written


def idle_w(answer):
    return sum(t.idle_power_w + t.host_power_w for t in answer.run.setup.terms)


def test_an_hour_at_each_price_by_hand(table):
    """Six requests in two hours: half an hour at row 23, an hour at row 0, half an hour at row 1."""
    rows = ["0.1,100"] * 24
    rows[23], rows[0], rows[1] = "1,10", "2,20", "4,40"
    answer = simulate_fleet(**{**OWNED, "rate": 0.001}, days=1 / 12, start_hour=23.5, hours=table(*rows), pue=1.5)
    found, joules = answer.by_hour, answer.run.energy_j + answer.run.host_energy_j
    assert found.start_s.tolist() == [0.0, 1800.0, 5400.0]
    assert found.energy_j.sum() == pytest.approx(1.5 * joules)
    above_j = found.energy_j / 1.5 - idle_w(answer) * np.array([1800.0, 3600.0, answer.run.end_s - 5400.0])
    assert (above_j >= -1e-3).all()
    assert above_j.sum() == pytest.approx(answer.run.energy_above_idle_j)
    kwh = found.energy_j / J_PER_KWH
    assert answer.electricity_usd == pytest.approx(kwh @ [1.0, 2.0, 4.0])
    assert answer.carbon_g == pytest.approx(kwh @ [10.0, 20.0, 40.0])
    assert answer.cost_usd == pytest.approx(answer.run.cost_usd + answer.electricity_usd)


def test_the_same_price_in_every_hour_is_the_flat_price(table):
    scaled = {"replicas_max": 3, "autoscaler": "hpa", "cold_start_s": 20.0, "rate": 40.0, "days": 0.01}
    flat = simulate_fleet(**{**OWNED, **scaled}, electricity=0.2, pue=1.3)
    hourly = simulate_fleet(**{**OWNED, **scaled}, hours=table("0.2,50"), pue=1.3)
    assert hourly.electricity_usd == pytest.approx(flat.electricity_usd)
    assert hourly.cost_usd == pytest.approx(flat.cost_usd)
    assert hourly.carbon_g == pytest.approx(flat.electricity_usd / 0.2 * 50)


def test_replicas_that_come_and_go_draw_while_they_run(table):
    """Rented replicas: hours' energy adds up to the run's, and the rent contains the electricity."""
    scaled = {"replicas_max": 3, "autoscaler": "hpa", "cold_start_s": 20.0, "rate": 60.0, "days": 0.06}
    answer = simulate_fleet(**{**LOAD, **scaled}, hours=table("0.2,50", "0.3,70"))
    run = answer.run
    assert len(run.spans) > 1
    assert answer.by_hour.energy_j.size == 2
    assert answer.by_hour.energy_j.sum() == pytest.approx(run.energy_j + run.host_energy_j)
    assert answer.electricity_usd == 0.0
    assert answer.cost_usd == run.cost_usd
    assert any("no pool is owned" in note for note in answer.notes)


def test_steady_hours_by_hand(table):
    found = simulate_fleet(**OWNED, days=1 / 12, steady=True, hours=table("1,10", "3,30"))
    kwh = [(h.power_w + h.host_power_w) * 3600.0 / J_PER_KWH for h in found.hours]
    assert len(kwh) == 2
    assert found.carbon_g == pytest.approx(10 * kwh[0] + 30 * kwh[1])
    assert found.cost_usd == pytest.approx(found.total("usd_per_s") + kwh[0] + 3 * kwh[1])
    assert found.to_json()["carbon_g"] == pytest.approx(found.carbon_g)


def test_a_table_of_carbon_leaves_the_cost_as_it_was(table):
    plain = simulate_fleet(**LOAD, num_requests=50, electricity=0.1).to_json()
    clean = simulate_fleet(
        **LOAD, num_requests=50, electricity=0.1, hours=table("400", header="carbon_g_per_kwh")
    ).to_json()
    assert clean.pop("carbon_g") == pytest.approx((plain["energy_j"] + plain["host_energy_j"]) / J_PER_KWH * 400)
    assert clean.pop("pue_ratio") == 1.0
    assert len(clean.pop("by_hour")["usd"]) == 1
    own = ("seconds", "settings", "notes")
    assert {k: v for k, v in clean.items() if k not in own} == {k: v for k, v in plain.items() if k not in own}


def test_owned_pools_pay_for_their_own_power_beside_rented_ones(table):
    """Both pools always run one replica; what both draw is the sum, and only the owned one's is paid at 0.1 $/kWh."""
    pools = [{"name": "a", "purchase": "owned", "usd_per_hour": 1.0}, {"name": "b", "usd_per_hour": 1.0}]
    answer = simulate_fleet(**LOAD, num_requests=200, pool=pools, hours=table("0.1,1"), change=False)
    run, end_s = answer.run, answer.run.end_s
    assert run.spent_j[-1].sum() == pytest.approx(run.energy_above_idle_j)
    assert (run.spent_j[-1] > 0.0).all()
    watts = run.setup.terms[0].idle_power_w + run.setup.terms[0].host_power_w
    own_j = watts * end_s + run.spent_j[-1][0]
    assert answer.electricity_usd == pytest.approx(own_j / J_PER_KWH * 0.1)
    assert answer.by_hour.energy_j.sum() == pytest.approx(run.energy_j + run.host_energy_j)


def test_what_cannot_be_priced_is_refused_in_words(table):
    with pytest.raises(ScenarioError, match="leave one of both out"):
        simulate_fleet(**OWNED, num_requests=9, electricity=0.1, hours=table("0.1,1"))
    pools = [{"name": "a", "purchase": "owned"}, {"name": "b"}]
    with pytest.raises(ScenarioError, match="do not keep apart"):
        simulate_fleet(**LOAD, days=0.1, pool=pools, hours=table("0.1,1"), steady=True)
    with pytest.raises(ScenarioError, match="survives"):
        simulate_fleet(**LOAD, hours=table("0.1,1"), survive="replica", slo=["ttft:900"])
    with pytest.raises(ScenarioError, match="usd_per_kwh, carbon_g_per_kwh"):
        simulate_fleet(**LOAD, num_requests=9, hours=table("1", header="price"))
    assert any("pue: not used" in note for note in simulate_fleet(**LOAD, num_requests=9, pue=1.3).notes)


def test_the_command_prints_co2(table, capsys):
    words = [w for key, value in OWNED.items() for w in (f"--{key.replace('_', '-')}", str(value))]
    words += ["--num-requests", "60", "--hours", table("0.2,400"), "--pue", "1.2"]
    assert run(["fleet", *words]) == 0
    assert "CO2" in capsys.readouterr().out
    assert run(["fleet", *words, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["carbon_g"] == pytest.approx((plain["energy_j"] + plain["host_energy_j"]) * 1.2 / J_PER_KWH * 400)
