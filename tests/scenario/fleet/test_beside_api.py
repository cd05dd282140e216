"""A fleet's requests priced on an API, against money worked out by hand."""

import json
from math import inf

import pytest

from orrery.base.errors import OrreryError, ScenarioError
from orrery.cli.main import run
from orrery.scenario.fleet.ask import simulate_fleet

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "rate": 20.0}
ONE = {**LOAD, "num_requests": 400, "usd_per_hour": 3.6}
EACH_USD = (500 * 0.5 + 60 * 2.0) / 1e6
PRICE = "in=0.5,out=2"


def test_the_same_requests_on_an_api_by_hand():
    """3.6 $/h is a thousandth of a dollar a second, used or not; the API takes 370 dollars for a million requests."""
    answer = simulate_fleet(**ONE, api_price=PRICE)
    found, length_s = answer.api, answer.run.end_s
    assert found.num_requests == 400
    assert found.api_usd == pytest.approx(400 * EACH_USD)
    assert found.fleet_usd == pytest.approx(answer.cost_usd) == pytest.approx(1e-3 * length_s)
    assert found.api_million_output_usd == pytest.approx(EACH_USD / 60 * 1e6)
    assert found.fleet_million_output_usd == pytest.approx(answer.usd_per_million_output_tokens)
    assert found.break_even_requests_per_s == pytest.approx(1e-3 / EACH_USD)
    assert found.sustained_requests_per_s == pytest.approx(answer.run.setup.capacity_requests_per_s)
    assert found.break_even_frac == pytest.approx(1e-3 / EACH_USD / found.sustained_requests_per_s)


def test_energy_above_idle_grows_with_the_load():
    answer = simulate_fleet(**ONE, api_price=PRICE, electricity=36.0)  # a cent a thousand joules
    run, found = answer.run, answer.api
    fixed_usd = run.cost_usd + (run.energy_j + run.host_energy_j - run.energy_above_idle_j) * 1e-5
    above_usd, api_usd = run.energy_above_idle_j * 1e-5, 400 * EACH_USD
    times = fixed_usd / (api_usd - above_usd) if api_usd > above_usd else inf
    assert found.fleet_usd == pytest.approx(answer.cost_usd)
    assert found.break_even_requests_per_s == pytest.approx(times * 400 / run.end_s)


def test_tokens_that_an_api_bills_as_cached():
    found = simulate_fleet(**ONE, api_price=PRICE + ",cached=0.1", cached_frac=0.4).api
    assert found.api_usd == pytest.approx(400 * (300 * 0.5 + 200 * 0.1 + 60 * 2.0) / 1e6)


def test_a_free_api_always_costs_less():
    found = simulate_fleet(**ONE, api_price="in=0,out=0").api
    assert found.break_even_requests_per_s == inf
    assert "at any load" in found.sentence
    assert found.to_json()["break_even_requests_per_s"] is None


def test_without_a_price_nothing_is_said_of_it():
    plain = simulate_fleet(**ONE).to_json()
    priced = simulate_fleet(**ONE, api_price=PRICE).to_json()
    assert "api" not in plain
    assert priced.pop("api")["num_requests"] == 400
    own = ("seconds", "settings")
    assert {k: v for k, v in priced.items() if k not in own} == {k: v for k, v in plain.items() if k not in own}


def test_pools_that_differ_have_no_share_of_what_they_sustain():
    pools = [{"name": "a"}, {"name": "b", "tp": 2}]
    found = simulate_fleet(**{**LOAD, "num_requests": 200}, pool=pools, api_price=PRICE).api
    assert found.sustained_requests_per_s is None
    assert found.break_even_frac is None
    assert "were served" in found.sentence


def test_wrong_prices_and_runs_that_simulate_nothing_are_refused():
    with pytest.raises(OrreryError, match=r"in=0\.6,out=2\.4"):
        simulate_fleet(**ONE, api_price="in=cheap")
    with pytest.raises(OrreryError, match="API price"):
        simulate_fleet(**ONE, api_price="no-such-model")
    with pytest.raises(ScenarioError, match="leave out survive and steady"):
        simulate_fleet(**LOAD, days=1, steady=True, api_price=PRICE)
    assert any("cached_frac: not used" in note for note in simulate_fleet(**ONE, cached_frac=0.5).notes)


def test_the_command_prints_it(capsys):
    words = [w for key, value in ONE.items() for w in (f"--{key.replace('_', '-')}", str(value))]
    assert run(["fleet", *words, "--api-price", "groq/llama-3.1-8b"]) == 0
    printed = capsys.readouterr()
    assert "the API" in printed.out
    assert "api_price: groq/llama-3.1-8b" in printed.err
    assert run(["fleet", *words, "--api-price", PRICE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["api"]["api_usd"] == pytest.approx(400 * EACH_USD)
