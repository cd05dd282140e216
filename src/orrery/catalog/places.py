"""Places on earth by name, and the round trips between them that a public cloud publishes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, Source, parse_fact, read_facts, read_toml
from orrery.fleet.regions import geography

FILE = Path(__file__).parent / "facts" / "places.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlace:
    """A place, its standard time, and the published round trips to the places before it."""

    name: str
    at: geography.Place
    utc_offset_s: float
    round_trips_s: tuple[float, ...]
    facts: tuple[Fact, ...]


def place_names() -> tuple[str, ...]:
    """Return every place's name."""
    return tuple(_places())


def get_place(name: str) -> NamedPlace:
    """Return the place of that name; UnknownName with the nearest where there is none."""
    if (found := _places().get(name.casefold())) is None:
        raise UnknownName("place", name, place_names())
    return found


def published_round_trip_s(a: str, b: str) -> float:
    """Return the median round trip between two places; within one, the time across a metropolitan area."""
    order = place_names()
    first, last = sorted((order.index(get_place(a).name), order.index(get_place(b).name)))
    if first == last:
        return float(place_facts()["same_place_round_trip_s"].value)
    return _places()[order[last]].round_trips_s[first]


def least_round_trip_s(a: geography.Place, b: geography.Place) -> float:
    """Return the time of light in a fibre there and back."""
    return geography.least_round_trip_s(a, b, float(place_facts()["fibre_index_ratio"].value))


@cache
def detour_ratio() -> float:
    """Return the median of published round trips over the time of light in a straight fibre."""
    return median(
        published_round_trip_s(a.name, b.name) / least_round_trip_s(a.at, b.at)
        for a, b in combinations(_places().values(), 2)
    )


@cache
def place_facts() -> Mapping[str, Fact]:
    """Return the facts that are of no single place."""
    return read_facts(FILE)[0]


@cache
def _places() -> Mapping[str, NamedPlace]:
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    rows: list[dict[str, Any]] = raw["place"]
    return {row["name"]: _named(row, sources) for row in rows}


def _named(row: Mapping[str, Any], sources: Mapping[str, Source]) -> NamedPlace:
    facts = {key: parse_fact(FILE.name, key, row[key], sources) for key in row if key != "name"}
    latitude, longitude = (float(word) for word in str(facts["where"].value).split())
    trips = facts.get("round_trips")
    return NamedPlace(
        name=row["name"],
        at=(latitude, longitude),
        utc_offset_s=float(facts["utc_offset_s"].value),
        round_trips_s=tuple(float(word) / 1e3 for word in str(trips.value).split()) if trips else (),
        facts=tuple(facts.values()),
    )
