"""Ways to pay, against months worked out by hand."""

from math import inf

import pytest

from orrery import plan
from orrery.base.errors import ScenarioError
from orrery.catalog.api_prices import api_price_names, get_api_price
from orrery.fleet.money import S_PER_MONTH, ApiPrice, Demand, Machines, Terms, compare, first_month_cheaper

PRICE = ApiPrice(input_usd_per_tokens=1e-6, output_usd_per_tokens=4e-6, cached_usd_per_tokens=1e-7)
DEMAND = Demand(requests_per_s=2.0, input_tokens=1000.0, output_tokens=500.0, cached_frac=0.5, busy_frac=0.5)
MACHINES = Machines(num_devices=4, power_w=4000.0, idle_power_w=1000.0, used_frac=0.4)
TERMS = Terms(
    rent_usd_per_s=2.0 / 3600,
    spot_usd_per_s=None,
    device_usd=30_000.0,
    life_months=48,
    upkeep_frac=0.2,
    people_usd=1000.0,
    electricity_usd_per_j=0.1 / 3.6e6,
    pue_ratio=1.5,
    is_power_in_rent=True,
)


def ways(**changes):
    terms = Terms(**({f: getattr(TERMS, f) for f in TERMS.__dataclass_fields__} | changes))
    return {way.name: way for way in compare(DEMAND, MACHINES, terms, PRICE, 60)}


def test_an_api_is_paid_by_the_token():
    # 500 fresh x 1e-6 + 500 cached x 1e-7 + 500 out x 4e-6 = 2.55e-3 a request, 2 a second, half of 730 hours
    api = ways()["api"]
    assert pytest.approx(2.55e-3 * 2 * 0.5 * 730 * 3600) == api.month_usd
    assert api.cash_usd[11] == pytest.approx(12 * api.month_usd)
    assert api.million_output_usd == pytest.approx(2.55e-3 / 500 * 1e6)


def test_rent_is_paid_in_every_hour():
    rent = ways()["rent"]
    assert rent.month_usd == rent.fixed_usd == pytest.approx(4 * 2 * 730 + 1000)
    paid_power = ways(is_power_in_rent=False)["rent"]
    # 1000 W idle all month and 3000 W more for half of it, times the PUE
    kwh = (1.0 + 3.0 * 0.5) * 730 * 1.5
    assert paid_power.month_usd - rent.month_usd == pytest.approx(kwh * 0.1)


def test_a_purchase_is_written_off_and_paid_at_once():
    own = ways()["own"]
    kwh = (1.0 + 3.0 * 0.5) * 730 * 1.5
    assert own.month_usd == pytest.approx(120_000 * 1.2 / 48 + 1000 + kwh * 0.1)
    monthly = 120_000 * 0.2 / 48 + 1000 + kwh * 0.1
    assert own.cash_usd[0] == pytest.approx(120_000 + monthly)
    assert own.cash_usd[48] - own.cash_usd[47] == pytest.approx(120_000 + monthly)  # bought again after its life


def test_at_the_break_even_utilisation_both_cost_the_same():
    own = ways()["own"]
    full = 2.55e-3 * 2 / 0.4 * 730 * 3600  # API dollars at what the machines sustain
    power = 3.0 / 0.4 * 730 * 1.5 * 0.1  # above idle, at that rate
    fixed = 120_000 * 1.2 / 48 + 1000 + 1.0 * 730 * 1.5 * 0.1
    assert own.fixed_usd == pytest.approx(fixed)
    assert own.break_even_frac == pytest.approx(fixed / (full - power))
    u = own.break_even_frac
    assert fixed + u * power == pytest.approx(u * full)


def test_a_free_api_never_costs_more():
    free = ApiPrice(input_usd_per_tokens=0.0, output_usd_per_tokens=0.0, cached_usd_per_tokens=0.0)
    found = {w.name: w for w in compare(DEMAND, MACHINES, TERMS, free, 12)}
    assert found["own"].break_even_frac == inf
    assert found["api"].month_usd == 0.0


def test_the_first_month_by_which_owning_was_cheaper():
    found = ways()
    month = first_month_cheaper(found["own"], found["rent"])
    assert month is not None
    assert found["own"].cash_usd[month - 1] < found["rent"].cash_usd[month - 1]
    assert found["own"].cash_usd[month - 2] >= found["rent"].cash_usd[month - 2]
    assert S_PER_MONTH == 730 * 3600


def test_every_published_price_has_a_day_and_a_source():
    for name in api_price_names():
        found = get_api_price(name)
        assert found.as_of[:2] == "20"
        assert all(fact.source for fact in found.facts)
        assert found.price.cached_usd_per_tokens <= found.price.input_usd_per_tokens


PLAN = {
    "model": "llama-3.1-8b",
    "device": "l40s",
    "rate": 2,
    "input_tokens": 500,
    "output_tokens": 100,
    "max_devices": 2,
}


def test_a_plan_without_prices_to_compare_says_nothing_of_them():
    assert plan(**PLAN).money is None
    assert "money" not in plan(**PLAN).to_json()


def test_a_plan_beside_an_api_by_name_and_by_numbers():
    named = plan(**PLAN, api_price="groq/llama-3.1-8b", usd_per_hour=1.0).money
    typed = plan(**PLAN, api_price="in=0.05,out=0.08", usd_per_hour=1.0).money
    assert named.way("api").month_usd == pytest.approx(typed.way("api").month_usd)
    assert named.way("api").month_usd == pytest.approx(2 * (500 * 0.05 + 100 * 0.08) / 1e6 * S_PER_MONTH, rel=1e-6)
    assert named.way("rent").month_usd == pytest.approx(730.0)
    assert named.way("own") is None


def test_wrong_prices_are_refused_in_words():
    with pytest.raises(ScenarioError, match=r"in=0\.6,out=2\.4"):
        plan(**PLAN, api_price="in=cheap")
    with pytest.raises(Exception, match="API price"):
        plan(**PLAN, api_price="no-such-model")
