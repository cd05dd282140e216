"""Several services behind the same limits: what is read is what all draw, and every clock behind a limit follows."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.fleet_more_views import print_more
from orrery.scenario.fleet.ask import simulate_fleet

EACH = {"model": "llama-3.1-8b", "input_tokens": 1000, "output_tokens": 100, "usd_per_hour": 3.0, "cold_start_s": 1.0}
ONE, TWO = EACH | {"rate": 12.0, "replicas": 1}, EACH | {"rate": 16.0, "replicas": 2}
A, B = {"name": "a", **ONE}, {"name": "b", **TWO}
TOP = {"device": "h100-sxm", "days": 0.001, "power_reading_s": 1.0, "power_delay_s": 2.0, "slo": ["ttft:2000"]}


def asked(*services, **top):
    return simulate_fleet(**{**TOP, **top}, service=list(services))


def drawn_w(answer, name):
    """Readings of a limit, by service."""
    return [
        next(one.drawn_w for one in found.run.power.limits if one.limit.name == name)
        for found in answer.services.values()
    ]


@pytest.fixture(scope="module")
def ample():
    return asked(A, B, power_budget_w=1e6)


def test_an_ample_limit_changes_no_bit_and_reads_the_sum(ample):
    """Each service alone behind a limit of its own has the same requests; the readings of both add up to the joint."""
    alone = [simulate_fleet(**TOP | one, power_budget_w=1e6, change=False) for one in (ONE, TWO)]
    for found, one in zip(ample.services.values(), alone, strict=True):
        assert np.array_equal(found.run.outcome.finish_s, one.run.outcome.finish_s)
        assert found.cost_usd == pytest.approx(one.cost_usd)
        assert found.regret.paid_s == pytest.approx(one.regret.paid_s)
    first, second = drawn_w(ample, "fleet")
    parts = [one.run.power.limits[0].drawn_w for one in alone]
    count = min(part.size for part in parts)
    assert np.array_equal(first, second)
    assert first[:count] == pytest.approx(parts[0][:count] + parts[1][:count])
    assert ample.services["a"].run.power.limits[0].rated_w == pytest.approx(3 * (700 + 575))


def test_a_limit_that_only_all_together_exceed_lowers_the_clocks_of_all(ample):
    """Beneath the joint draw and far above either's own: neither would be slowed alone, both are together."""
    joint_w = float(np.median(drawn_w(ample, "fleet")[0]))
    found = asked(A, B, power_budget_w=joint_w)
    for name, one in found.services.items():
        assert one.run.power.clock_frac.min() < 1.0, name
        assert one.run.power.clock_frac.shape[1] == {"a": 1, "b": 2}[name]
        assert one.run.tpot_s.mean() > ample.services[name].run.tpot_s.mean()
    assert found.peak_power_w <= ample.peak_power_w * 1.01
    alone = simulate_fleet(**TOP | TWO, power_budget_w=joint_w, change=False)
    assert alone.run.power.clock_frac.size == 0


def test_a_rack_of_one_service_slows_that_one_alone(ample):
    row = {"row": [{"name": "r"}], "rack": [{"name": "x", "row": "r", "limit_w": 1200.0}, {"name": "y", "row": "r"}]}
    found = asked({**A, "racks": "y"}, {**B, "racks": "x"}, **row)
    a, b = found.services.values()
    assert np.array_equal(a.run.outcome.finish_s, ample.services["a"].run.outcome.finish_s)
    assert b.run.power.clock_frac.min() < 1.0
    sums = drawn_w(found, "x")[0] + drawn_w(found, "y")[0]
    assert sums == pytest.approx(drawn_w(found, "r")[0])


def test_every_service_is_shown_with_the_limits(ample, capsys):
    print_more(ample)
    shown = capsys.readouterr().out
    assert shown.count("clocks lowered for 0 s") == 2
    assert "every SLO is met" in shown


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"service": [A, {**B, "power_budget_w": 5e3}]}, r"\[\[service\]\] 2: power_budget_w: limits stand at the top"),
        ({"oversubscribe": True}, "oversubscribe: is asked of one service"),
        ({"share": "time"}, "power_budget_w: models that share replicas are simulated without limits"),
        ({"row": [{"name": "r"}], "rack": [{"name": "x", "row": "r"}], "racks": "z"}, "there is no rack 'z'"),
        ({"jobs": 2}, "jobs, ray: services behind the same power limits run on one clock"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong, says):
    with pytest.raises(ScenarioError, match=says):
        simulate_fleet(**{**TOP, "power_budget_w": 1e6, "service": [A, B], **wrong})


def test_a_rack_in_which_no_service_stands_is_refused():
    row = {"row": [{"name": "r"}], "rack": [{"name": n, "row": "r"} for n in ("x", "y", "z")]}
    with pytest.raises(ScenarioError, match="rack z: no pool stands in it"):
        asked({**A, "racks": "y"}, {**B, "racks": "x"}, **row)
