"""Dollars by hand: intervals, least where most tokens are made, and the ways to pay for a plan month by month."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from orrery.base.cost import Interval
from orrery.base.errors import ScenarioError
from orrery.planner.money import Tariff
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.money import api_price_of, money_of
from orrery.scenario.schema import read_scenario

ASKED = {"model": "meta-llama/Llama-3.1-8B", "device": "h100-sxm", "input_tokens": 100, "output_tokens": 100}


@pytest.fixture(scope="module")
def answer():
    found = estimate(**ASKED, concurrency=4, engine_version="0.14")
    assert isinstance(found, Answer)
    return found


def with_figures(answer, tariff, **intervals):
    known = replace(
        answer.estimate,
        num_devices=2,
        power_w=1000.0,
        output_tokens_per_s=500.0,
        total_tokens_per_s=1000.0,
        intervals=intervals,
    )
    return replace(answer, estimate=known, tariff=tariff)


def test_dollars_go_with_the_inverse_of_the_rate(answer):
    rate = Interval(low_80=400.0, high_80=800.0, low_95=250.0, high_95=1000.0)
    found = with_figures(answer, Tariff(usd_per_hour=3.6), output_tokens_per_s=rate)
    # two devices cost 2 x 3.6 / 3600 = 0.002 $/s; at 500 tokens/s that is 4 $ a million
    assert found.usd_per_million_tokens == pytest.approx(4.0)
    around = found.intervals()["usd_per_million_tokens"]
    assert (around.low_80, around.high_80) == pytest.approx((0.002 / 800 * 1e6, 0.002 / 400 * 1e6))
    assert (around.low_95, around.high_95) == pytest.approx((2.0, 8.0))


def test_electricity_adds_what_power_leaves_open(answer):
    rate = Interval(low_80=400.0, high_80=800.0, low_95=400.0, high_95=800.0)
    power = Interval(low_80=720.0, high_80=1440.0, low_95=720.0, high_95=1440.0)
    tariff = Tariff(usd_per_hour=3.6, electricity_usd_per_kwh=2.5)
    around = with_figures(answer, tariff, output_tokens_per_s=rate, power_w=power).intervals()["usd_per_million_tokens"]
    # 720 W at 2.5 $/kWh are 0.0005 $/s, 1440 W 0.001 $/s, on top of 0.002 $/s
    assert (around.low_80, around.high_80) == pytest.approx((0.0025 / 800 * 1e6, 0.003 / 400 * 1e6))


def test_a_given_rate_leaves_dollars_to_power_alone(answer):
    power = Interval(low_80=720.0, high_80=1440.0, low_95=720.0, high_95=1440.0)
    tariff = Tariff(usd_per_hour=3.6, electricity_usd_per_kwh=2.5)
    around = with_figures(answer, tariff, power_w=power).intervals()["usd_per_million_tokens"]
    assert (around.low_80, around.high_80) == pytest.approx((0.0025 / 500 * 1e6, 0.003 / 500 * 1e6))
    assert "usd_per_million_tokens" not in with_figures(answer, tariff).intervals()


def test_no_price_no_interval(answer):
    rate = Interval(low_80=400.0, high_80=800.0, low_95=250.0, high_95=1000.0)
    found = with_figures(answer, Tariff(usd_per_hour=None), output_tokens_per_s=rate)
    assert "usd_per_million_tokens" not in found.intervals()


def test_every_answer_holds_its_own_dollars(answer):
    around, e = answer.intervals(), answer.estimate
    for name, rate in (("usd_per_million_tokens", "output_tokens_per_s"),):
        value, dollars, tokens = getattr(answer, name), around[name], around[rate]
        assert dollars.low_95 <= dollars.low_80 <= value <= dollars.high_80 <= dollars.high_95
        assert dollars.low_80 * tokens.high_80 == pytest.approx(value * e.output_tokens_per_s)


PLAN = SimpleNamespace(
    operation=SimpleNamespace(
        requests_per_s=2.0,
        highest_requests_per_s=4.0,
        num_devices=2,
        deployment=SimpleNamespace(
            cluster=SimpleNamespace(device=SimpleNamespace(idle_power_w=70.0, host_power_w=30.0))
        ),
    ),
    total_tokens_per_s=600.0,
    output_tokens_per_s=200.0,
    power_w=1000.0,
    host_power_w=200.0,
)
"""Two devices that draw 1,200 W, and 200 W idle, at half of the rate that they sustain."""

MONTH_S = 2_628_000
PAID = {
    "rate": 2,
    "api_price": "in=1,out=4,cached=0.5",
    "buy_usd": 9600,
    "spot_usd_per_hour": 0.9,
    "electricity": 0.36,  # 1e-7 $/J
    "pue": 1.5,
    "life_months": 48,
    "upkeep_frac": 0.25,
    "people_usd_per_month": 1000,
    "busy_frac": 0.5,
    "cached_frac": 0.25,
    "months": 3,
}


RENT = Tariff(usd_per_hour=3.6)


def paid(tariff=RENT, **settings):
    written = {name: value for name, value in (PAID | settings).items() if value is not None}
    return money_of(read_scenario(written), PLAN, tariff)


def test_a_month_of_every_way_to_pay():
    """A watt costs 1e-7 x 1.5 x 2,628,000 = 0.3942 $ a month: 200 idle ones 78.84 $, and half of the time 1,000 more,
    197.1 $. Two devices of 9,600 $ with a quarter for upkeep are 500 $ a month over four years. A request has 150 new
    tokens, 50 cached ones and 100 of output: 0.000575 $."""
    found = paid()
    power = {"idle": 200 * 0.3942, "more": 1000 * 0.3942 / 2}
    fixed = {
        "rent": 2 * 0.001 * MONTH_S + 1000 + power["idle"],
        "spot": 2 * 0.00025 * MONTH_S + 1000 + power["idle"],
        "own": 500 + 1000 + power["idle"],
    }
    for name, usd in fixed.items():
        assert found.way(name).fixed_usd == pytest.approx(usd)
        assert found.way(name).month_usd == pytest.approx(usd + power["more"])
    assert found.way("api").month_usd == pytest.approx(2 * 0.000575 * MONTH_S / 2)
    assert [way.name for way in found.ways] == ["api", "own", "spot", "rent"]
    own = found.way("own")
    cash = 2 * 9600 * 0.25 / 48 + 1000 + sum(power.values())
    assert own.cash_usd == pytest.approx([19200 + cash, 19200 + 2 * cash, 19200 + 3 * cash])
    assert own.million_output_usd == pytest.approx(own.month_usd / (100 * MONTH_S) * 1e6)
    assert (found.used_frac, found.num_devices) == (0.25, 2)
    # at the full rate an API takes 6,044.4 $ a month, of which 788.4 $ are saved in power
    assert own.break_even_frac == pytest.approx(fixed["own"] / (6044.4 - 788.4))
    assert found.way("lease") is None
    assert found.sentences[:2] == (
        "rent: the API costs less at any load that these machines sustain; it is used 25 %.",
        "own: the API costs more from 30 % utilisation; it is used 25 %.",
    )


def test_the_month_from_which_owning_was_cheaper():
    """19,200 $ and 1,375.94 a month reach 6,531.94 a month of rent after 3.7 months; 4,800 $ after 0.9."""
    assert paid().sentences[3:] == (
        "own has not cost less than rent in all within 3 months.",
        "own has not cost less than api in all within 3 months.",
    )
    assert paid(months=4).sentences[3] == "own has cost less than rent in all from month 4."
    assert paid(buy_usd=2400).sentences[3] == "own has cost less than rent in all from month 1."


def test_power_is_in_a_rent_unless_its_price_is_said():
    found = paid(electricity=None, people_usd_per_month=None, busy_frac=None)
    assert found.way("rent").month_usd == found.way("rent").fixed_usd == pytest.approx(2 * 0.001 * MONTH_S)
    assert found.used_frac == 0.5
    assert paid(upkeep_frac=0, people_usd_per_month=0).way("own").fixed_usd == pytest.approx(400 + 78.84)


def test_defaults_of_owning_are_a_fifth_over_four_years():
    found = paid(life_months=None, upkeep_frac=None, people_usd_per_month=0, electricity=0, months=None)
    assert found.way("own").month_usd == pytest.approx(2 * 9600 * 1.2 / 48)
    assert len(found.way("own").cash_usd) == 36
    assert found.notes[:2] == ("life_months: 48 (assumed)", "upkeep_frac: 0.2 (assumed)")


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({}, "own machines draw at $0.36/kWh and a PUE of 1.5"),
        ({"buy_usd": None}, "life_months: not used; write buy_usd"),
        ({"buy_usd": None, "electricity": None}, "pue: not used; a rent includes electricity"),
        ({"api_price": None}, "cached_frac: not used; write api_price"),
        ({}, "spot: devices are taken to stay; what an interruption costs is not in the price"),
        ({"people_usd_per_month": None}, "people_usd_per_month: 0 (nobody is paid for running machines)"),
    ],
)
def test_what_is_assumed_and_what_is_not_used(settings, note):
    assert note in paid(**settings).notes
    if settings:
        assert note not in paid().notes


def test_a_price_that_is_written_or_named():
    price, notes = api_price_of("in=1,out=4")
    assert (price.input_usd_per_tokens, price.output_usd_per_tokens) == (1e-6, 4e-6)
    assert price.cached_usd_per_tokens == 1e-6
    assert notes == ()
    assert api_price_of(None) == (None, ())
    _, (note,) = api_price_of("groq/llama-3.1-8b")
    assert "a million tokens" in note


def test_ways_to_pay_need_a_rate_and_a_price():
    with pytest.raises(ScenarioError, match="without a rate there is no month"):
        paid(rate=None)
    with pytest.raises(ScenarioError, match="nothing has a price"):
        paid(Tariff(usd_per_hour=None), buy_usd=None, spot_usd_per_hour=None, api_price=None)
