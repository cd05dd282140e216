"""Prices of device-hours as published on a day, and of electricity.

Prices come as ranges of one kind of offer (``on-demand hyperscaler``, ``on-demand specialty``,
``on-demand long-tail``, ``on-demand median``, ``list``, ``reserved``, ``assumed``), each with its date. The kind that
tells most wins, and of it the newest: a published median; else the median of the on-demand offers' middles; else a
list price; else a reserved one; else one that somebody assumed.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError
from orrery.base.sources import Fact, Source, parse_fact, read_toml

FILE = Path(__file__).parent / "facts" / "prices.toml"

PREFERENCE = (
    ("on-demand median",),
    ("on-demand hyperscaler", "on-demand specialty", "on-demand long-tail"),
    ("list",),
    ("reserved",),
    ("assumed",),
)
"""Kinds of price, the most telling first; kinds of one group are taken together."""

SAME_VINTAGE_DAYS = 120
"""On-demand offers this close to the newest one are taken to describe the same market."""

STALE_DAYS = 365
_S_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One published range of one kind."""

    kind: str
    as_of: date
    low: Fact  # usd_per_s
    high: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of one device-hour: the value to use, the published range, and its date."""

    usd_per_device_hour: float
    low: float
    high: float
    as_of: date
    kind: str
    source: str
    is_stale: bool
    note: str  # how it was chosen; and, when stale, that it is
    facts: tuple[Fact, ...] = ()

    @property
    def usd_per_device_s(self) -> float:
        """The same price in base units."""
        return self.usd_per_device_hour / _S_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Electricity:
    """Price of energy, and the building's overhead on the computers' power."""

    usd_per_j: float
    pue_ratio: float
    as_of: date
    facts: tuple[Fact, ...]


def price_of(device: str, on: date | None = None) -> Price | None:
    """The price of the device of that canonical name, as known ``on`` that day (default: today); None if unknown."""
    return _price_on(device, on or date.today())


@lru_cache(maxsize=1024)
def _price_on(device: str, today: date) -> Price | None:
    known = [offer for offer in _offers().get(device, ()) if offer.as_of <= today]
    for kinds in PREFERENCE:
        if chosen := _newest([offer for offer in known if offer.kind in kinds]):
            return _price(chosen, [offer for offer in known if _is_same_vintage(offer, chosen[0].as_of)], today)
    return None


def electricity() -> Electricity:
    """Default price of electricity."""
    raw, sources = _tables()
    table: dict[str, Any] = raw["electricity"]
    facts = tuple(parse_fact(FILE.name, name, table[name], sources) for name in ("energy_usd_per_j", "pue_ratio"))
    return Electricity(
        usd_per_j=float(facts[0].value), pue_ratio=float(facts[1].value), as_of=_day(table["as_of"]), facts=facts
    )


def _newest(offers: Sequence[Offer]) -> list[Offer]:
    """The offers of the newest vintage, newest first."""
    ordered = sorted(offers, key=lambda offer: offer.as_of, reverse=True)
    return [offer for offer in ordered if _is_same_vintage(offer, ordered[0].as_of)]


def _is_same_vintage(offer: Offer, day: date) -> bool:
    return abs(offer.as_of - day) <= timedelta(days=SAME_VINTAGE_DAYS)


def _price(chosen: Sequence[Offer], market: Sequence[Offer], today: date) -> Price:
    """The median of the chosen offers' middles, with the range of the on-demand market around it."""
    middle = statistics.median(_hourly(o.low) / 2 + _hourly(o.high) / 2 for o in chosen)
    around = [o for o in market if o.kind.startswith("on-demand")] or list(chosen)
    as_of = chosen[0].as_of
    is_stale = today - as_of > timedelta(days=STALE_DAYS)
    note = f"median of {len(chosen)} {_kinds(chosen)} offer{'s' if len(chosen) > 1 else ''} of {as_of:%B %Y}"
    if is_stale:
        note += f"; more than a year old on {today:%d %B %Y}: prices move, so give your own with --usd-per-hour"
    return Price(
        usd_per_device_hour=middle,
        low=min(middle, *(_hourly(o.low) for o in around)),
        high=max(middle, *(_hourly(o.high) for o in around)),
        as_of=as_of,
        kind=_kinds(chosen),
        is_stale=is_stale,
        source="; ".join(sorted({o.low.source.title for o in chosen if o.low.source})),
        note=note,
        facts=tuple(fact for o in chosen for fact in (o.low, o.high)),
    )


def _kinds(offers: Sequence[Offer]) -> str:
    kinds = {offer.kind for offer in offers}
    return kinds.pop() if len(kinds) == 1 else "on-demand"


def _hourly(fact: Fact) -> float:
    return float(fact.value) * _S_PER_HOUR


@cache
def _tables() -> tuple[dict[str, Any], Mapping[str, Source]]:
    raw = read_toml(FILE)
    return raw, {key: Source(**table) for key, table in raw["sources"].items()}


@cache
def _offers() -> dict[str, tuple[Offer, ...]]:
    raw, sources = _tables()
    known = {kind for kinds in PREFERENCE for kind in kinds}
    found: dict[str, tuple[Offer, ...]] = {}
    for entry in raw["price"]:
        if entry["kind"] not in known:
            raise FactError(f"{FILE.name}: kind {entry['kind']!r} is none of {', '.join(sorted(known))}.")
        low, high = (
            parse_fact(FILE.name, f"{end}_usd_per_s", entry[f"{end}_usd_per_s"], sources) for end in ("low", "high")
        )
        offer = Offer(kind=entry["kind"], as_of=_day(entry["as_of"]), low=low, high=high)
        for device in entry["devices"]:
            found[device] = (*found.get(device, ()), offer)
    return found


def _day(text: str) -> date:
    """``2026-05-20``, or the first of the month for ``2026-05``."""
    return date.fromisoformat(text if len(text) > len("2026-05") else f"{text}-01")
