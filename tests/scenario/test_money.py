"""Intervals of dollars: least where most tokens are made, by hand."""

from dataclasses import replace

import pytest

from orrery.base.cost import Interval
from orrery.planner.money import Tariff
from orrery.scenario.ask import Answer, estimate

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
