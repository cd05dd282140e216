"""Public API prices for a million tokens, as published on a day."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, Source, parse_fact, read_toml
from orrery.catalog.models import find
from orrery.fleet.money import TOKENS_PER_MILLION, ApiPrice

FILE = Path(__file__).parent / "facts" / "api_prices.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPrice:
    """One provider's price of one model, with its day and facts."""

    name: str
    as_of: str
    price: ApiPrice
    facts: tuple[Fact, ...]

    def usd_per_million(self, input_tokens: float, output_tokens: float) -> float:
        """Dollars of a million output tokens together with the input that requests of these lengths take."""
        each = self.price.output_usd_per_tokens + self.price.input_usd_per_tokens * input_tokens / output_tokens
        return each * TOKENS_PER_MILLION


def api_prices_of(model: str) -> tuple[PublishedPrice, ...]:
    """Every published price of a model, whichever of its spellings either side uses."""
    if (checkpoint := find(model)) is None:
        return ()
    return tuple(get_api_price(name) for name, priced in _priced_models().items() if priced == checkpoint)


@cache
def _priced_models() -> Mapping[str, tuple[str, str] | None]:
    """The catalogued model of each published price; None where the catalogue does not have it."""
    return {name: find(name.partition("/")[2]) for name in api_price_names()}


def api_price_names() -> tuple[str, ...]:
    """Return every published price's name."""
    return tuple(sorted(_prices()))


def get_api_price(name: str) -> PublishedPrice:
    """Return the price of that name; UnknownName with the nearest where there is none."""
    if (found := _prices().get(name.casefold())) is None:
        raise UnknownName("API price", name, api_price_names())
    return found


@cache
def _prices() -> Mapping[str, PublishedPrice]:
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    rows: list[dict[str, Any]] = raw["price"]
    return {row["name"]: _published(row, sources) for row in rows}


def _published(row: Mapping[str, Any], sources: Mapping[str, Source]) -> PublishedPrice:
    kinds = [kind for kind in ("input", "output", "cached") if kind in row]
    facts = {kind: parse_fact(FILE.name, f"{kind}_million_usd", row[kind], sources) for kind in kinds}
    each = {kind: float(fact.value) / TOKENS_PER_MILLION for kind, fact in facts.items()}
    price = ApiPrice(
        input_usd_per_tokens=each["input"],
        output_usd_per_tokens=each["output"],
        cached_usd_per_tokens=each.get("cached", each["input"]),
    )
    return PublishedPrice(name=row["name"], as_of=row["as_of"], price=price, facts=tuple(facts.values()))
