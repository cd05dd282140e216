"""Prices are dated: the choice is stated, the range holds the choice, and old ones say that they are old."""

from datetime import date

import pytest
from battery import over

from orrery.catalog.devices import device_names
from orrery.catalog.prices import electricity, price_of

TODAY = date(2026, 11, 1)


def test_every_priced_device_is_in_the_catalogue() -> None:
    priced = [name for name in device_names() if price_of(name, TODAY)]
    assert len(priced) >= 20
    assert {"h100-sxm", "a100-sxm-80gb", "h200-sxm", "b200", "gb200", "mi300x", "l40s", "l4", "rtx-4090"} <= set(priced)


@over([n for n in device_names() if price_of(n, TODAY)])
def test_the_range_holds_the_price_and_the_source_is_named(name: str) -> None:
    price = price_of(name, TODAY)
    assert price is not None
    assert 0.01 < price.low <= price.usd_per_device_hour <= price.high < 100
    assert price.source
    assert price.facts
    assert price.as_of <= TODAY
    assert price.usd_per_device_s == pytest.approx(price.usd_per_device_hour / 3600)


def test_unknown_price_is_none_so_that_the_user_is_asked() -> None:
    assert price_of("raspberry-pi-5-8gb") is None
    assert price_of("no-such-device") is None


def test_a_published_median_wins_over_single_offers() -> None:
    price = price_of("h100-sxm", TODAY)
    assert price is not None
    assert price.kind == "on-demand median"
    assert price.usd_per_device_hour == pytest.approx(2.95)
    assert (price.low, price.high) == (pytest.approx(1.99), pytest.approx(5.0))


def test_without_a_median_the_middle_of_the_offers_is_taken_and_said() -> None:
    price = price_of("a100-sxm-80gb", TODAY)
    assert price is not None
    assert price.usd_per_device_hour == pytest.approx(1.30)  # middles 2.25, 1.30 and 0.95
    assert price.note == "median of 3 on-demand offers of May 2026"


def test_a_stale_price_says_so_in_a_sentence() -> None:
    price = price_of("h100-sxm", date(2027, 6, 1))
    assert price is not None
    assert price.is_stale
    assert "more than a year old on 01 June 2027" in price.note
    assert "--usd-per-hour" in price.note
    fresh = price_of("h100-sxm", TODAY)
    assert fresh is not None
    assert not fresh.is_stale
    assert "year old" not in fresh.note


def test_an_earlier_day_sees_the_prices_of_its_time() -> None:
    price = price_of("h100-sxm", date(2024, 6, 1))
    assert price is not None
    assert (price.usd_per_device_hour, price.kind) == (pytest.approx(4.25), "list")
    assert price_of("h100-sxm", date(2023, 1, 1)) is None


def test_electricity_is_between_two_and_forty_cents_a_kilowatt_hour() -> None:
    power = electricity()
    assert 0.02 < power.usd_per_j * 3.6e6 < 0.40
    assert 1.0 <= power.pue_ratio < 2.0
    assert power.facts[1].note
