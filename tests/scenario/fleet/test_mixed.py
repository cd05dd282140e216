"""Several models over several kinds of devices: the joint program by hand, and its plan served."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.fleet.mix import Block, cheapest, cheapest_together
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.mixed import MixedAnswer

pytest.importorskip("highspy")

LOAD = {"model": "llama-3.1-8b", "rate": 10.0, "trace": "chat", "days": 0.005, "slo": ["tpot:100"], "mix": True}


def block(loads, usd, devices):
    return Block(loads_ratio=np.array(loads), usd_per_s=np.array(usd), num_devices=np.array(devices))


def test_what_one_service_takes_from_stock_the_other_lacks():
    """Both would take the cheap type alone (2 and 2 replicas, $4); with three of it one service takes the dear one."""
    one = block([[2.0, 1.0]], [1.0, 2.5], [[1, 0], [0, 1]])
    free = cheapest_together((one, one), np.array([9.0, 9.0]))
    assert [m.num_replicas.tolist() for m in free] == [[2, 0], [2, 0]]
    assert cheapest(one.loads_ratio, one.usd_per_s).usd_per_s == free[0].usd_per_s == 2.0
    tight = cheapest_together((one, one), np.array([3.0, 9.0]))
    assert sum(m.usd_per_s for m in tight) == pytest.approx(2.0 + 2.5)
    assert sum(m.num_replicas[0] for m in tight) <= 3
    assert cheapest_together((one, one), np.array([3.0, 0.0])) is None


def test_one_device_is_that_fleet_to_the_bit():
    mixed = simulate_fleet(**LOAD, device="h100-sxm", tp=1)
    assert isinstance(mixed, MixedAnswer)
    ((_, part),) = mixed.parts.services.items()
    replicas = mixed.rows[0]["replicas"]
    plain = simulate_fleet(**{**LOAD, "mix": None}, device="h100-sxm", tp=1, replicas=replicas, change=False)
    assert np.array_equal(part.run.outcome.finish_s, plain.run.outcome.finish_s)
    assert part.cost_usd == plain.cost_usd
    assert mixed.rows[0]["requests_frac"] == pytest.approx(1.0)


def test_more_devices_never_cost_more_spare_does_and_every_request_is_served():
    alone = [simulate_fleet(**LOAD, device=name).usd_per_hour for name in ("l4", "h100-sxm")]
    both = simulate_fleet(**LOAD, device="l4,h100-sxm")
    assert both.usd_per_hour <= min(alone) * 1.001
    assert simulate_fleet(**LOAD, device="l4,h100-sxm", spare_frac=0.9).usd_per_hour > both.usd_per_hour
    plain = both.to_json()
    assert plain["num_requests"] == simulate_fleet(**{**LOAD, "mix": None}, device="h100-sxm").num_sent
    assert all(a.run.fates["served"] == a.num_sent for a in both.parts.services.values())


def test_services_share_a_stock_and_each_is_served(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.toml").write_text(
        'device = "l4,h100-sxm"\ndays = 0.005\nslo = ["tpot:60"]\nmix = true\nstock = "h100-sxm=1"\n'
        '[[service]]\nname = "a"\nmodel = "llama-3.1-8b"\nrate = 5\ninput_tokens = 500\noutput_tokens = 100\n'
        '[[service]]\nname = "b"\nmodel = "llama-3.2-1b"\nrate = 20\ninput_tokens = 200\noutput_tokens = 50\n'
    )
    answer = simulate_fleet(tmp_path / "f.toml")
    assert {row["service"] for row in answer.rows} == {"a", "b"}
    assert sum(row["replicas"] for row in answer.rows if row["device"] == "h100-sxm") <= 1
    assert answer.parts.is_met
    assert run(["fleet", "f.toml"]) == 0
    assert "All replicas" in capsys.readouterr().out
    none = simulate_fleet(tmp_path / "f.toml", stock="h100-sxm=0,l4=0")
    assert isinstance(none, InfeasibleAnswer)
    assert none.infeasible.unit == "devices"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"autoscaler": "hpa"}, "autoscaler: a mix chooses replicas by itself"),
        ({"slo": ["ttft:100"]}, "write tpot:100"),
        ({"stock": "h100"}, "write DEVICE=COUNT"),
        ({"stock": "b200=3"}, "b200 is no device of"),
        ({"mix": False, "stock": "h100-sxm=3"}, "stock: is about a mix"),
        ({"mix": False, "spare_frac": 0.1}, "spare_frac: is about a mix"),
        ({"trace": None, "turns": 3, "input_tokens": 50, "output_tokens": 9}, "wait for one another"),
    ],
)
def test_a_mix_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ScenarioError, match=message):
        simulate_fleet(**{**LOAD, "device": "h100-sxm", **wrong})


def test_a_limit_that_no_device_keeps_is_infeasible():
    assert isinstance(simulate_fleet(**{**LOAD, "slo": ["tpot:0.1"]}, device="h100-sxm"), InfeasibleAnswer)
