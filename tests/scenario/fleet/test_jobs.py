"""Batch work beside a fleet, in the hours of its run."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.shift import shift

LOAD = {"model": "llama-3.2-1b", "device": "h100-sxm", "input_tokens": 100, "output_tokens": 10, "rate": 0.1}
PRICES = (0.3, 0.1, 0.2, 0.4)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "hours.csv"
    path.write_text(
        "usd_per_kwh,carbon_g_per_kwh\n" + "".join(f"{p},{g}\n" for p, g in zip(PRICES, (50, 400, 40, 30), strict=True))
    )
    return str(path)


def run(table, **more):
    return simulate_fleet(**LOAD, days=4 / 24, replicas=1, change=False, hours=table, **more)


def test_a_job_goes_where_a_kilowatt_hour_is_cheap_and_the_service_is_as_without(table):
    """3 kWh at most 2 kW: two in the hour at 10 cents, one at 20: 40 cents; at once 2 at 30 and 1 at 10: 70 cents."""
    plain, answer = run(table), run(table, job="train=3,most=2")
    assert answer.jobs.best.usd == pytest.approx(0.4)
    assert answer.jobs.early.usd == pytest.approx(0.7)
    assert answer.jobs.best.job_w[0] == pytest.approx([0.0, 2000.0, 1000.0, 0.0])
    assert plain.jobs is None
    assert "jobs" not in plain.to_json()
    assert plain.cost_usd == answer.cost_usd
    assert answer.to_json()["jobs"]["shifted"]["usd"] == pytest.approx(0.4)


def test_carbon_has_its_price_and_the_site_its_share(table):
    """At $1,000 a tonne hours cost 35, 50, 24 and 43 cents: the third first, then the first."""
    answer = run(table, job="train=3,most=2", usd_per_tonne=1000.0, pue=1.5)
    assert answer.jobs.best.job_w[0] == pytest.approx([1000.0, 0.0, 2000.0, 0.0])
    assert answer.jobs.best.usd == pytest.approx(1.5 * (2 * 0.2 + 0.3))


def test_jobs_are_those_of_shift_beside_what_the_service_draws(table, tmp_path):
    answer = run(table, job=["train=1,until=3", "eval=0.5"], row_limit_w=1500.0)
    watts = answer.by_hour.energy_j / 3600.0
    assert (watts < 1500.0).all()
    written = tmp_path / "with_power.csv"
    rows = (f"{p},{w:.17g}\n" for p, w in zip(PRICES, watts, strict=True))
    written.write_text("usd_per_kwh,power_w\n" + "".join(rows))
    alone = shift(hours=str(written), job=["train=1,until=3", "eval=0.5"], row_limit_w=1500.0)
    assert answer.jobs.best.usd == pytest.approx(alone.best.usd)
    assert answer.jobs.peak_w == pytest.approx(alone.peak_w)
    assert answer.jobs.peak_w <= 1500.0 + 1e-6
    assert answer.to_json()["peak_power_w"] >= watts.max()


def test_work_that_does_not_fit_says_so_and_the_service_is_answered(table):
    answer = run(table, job="train=30,most=2")
    assert isinstance(answer.jobs, InfeasibleAnswer)
    assert "energy of the jobs" in answer.to_json()["jobs"]["infeasible"]["what"]
    assert np.isfinite(answer.cost_usd)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"row_limit_w": 5.0}, "row_limit_w: there are no jobs"),
        ({"usd_per_tonne": 5.0}, "usd_per_tonne: there are no jobs"),
        ({"job": "train=3", "hours": None}, "write hours = day.csv"),
        ({"job": "train=3", "steady": True}, "leave out steady and survive"),
        ({"job": "train=3", "days": 0.01}, "no whole hour"),
        ({"job": "train=x"}, "write NAME=KWH"),
        ({"job": "train=3,until=9"}, "hours 0 to 4"),
    ],
)
def test_jobs_that_make_no_sense_are_refused(table, wrong, message):
    with pytest.raises(ScenarioError, match=message):
        simulate_fleet(**{**LOAD, "days": 4 / 24, "hours": table, **wrong}).to_json()
