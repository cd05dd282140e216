"""A scenario in an address: every view can be shared, because all that it was asked stands in its URL.

``/design?model=llama-3.1-8b&device=h100-sxm&tp=2`` has the keys of a scenario file. Lists stand as repeated keys.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import ImmutableMultiDict

from orrery.base.errors import OrreryError
from orrery.scenario.fields import BY_NAME
from orrery.scenario.schema import Scenario, read_scenario
from orrery.web.named import grounded
from orrery.web.place import Place

GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d*)?|-?\d+(?:_\d+)+(?:\.\d*)?")
"""Spellings of numbers whose thousands are parted."""

Query = ImmutableMultiDict[str, str]
"""The parameters of an address, or the fields of a form."""


def read_by(commands: Collection[str]) -> frozenset[str]:
    """Settings that any of these commands reads."""
    return frozenset(name for name, setting in BY_NAME.items() if setting.commands.intersection(commands))


def settings_of(query: Query, prefix: str = "") -> dict[str, Any]:
    """The settings of a query; blank fields are left out, and so is what is no setting.

    With a prefix, only the keys that begin with it, which lose it: ``a.tp=2`` for the first of two designs.
    """
    found: dict[str, Any] = {}
    for key in query:
        name = key.removeprefix(prefix).replace("-", "_")
        if not key.startswith(prefix) or name not in BY_NAME:
            continue
        values = [value.strip() for value in query.getlist(key) if value.strip()]
        if BY_NAME[name].kind == "words":
            values = [part.strip() for value in values for part in value.split(",") if part.strip()]
            if values:
                found[name] = values
        elif values:
            found[name] = without_groups(values[-1]) if _is_number(name) else values[-1]
    return found


def without_groups(number: str) -> str:
    """A number without what parts its thousands: ``1,024`` and ``1_024``; ``1,5`` stays, and is refused so."""
    return number.replace(",", "").replace("_", "") if GROUPED.fullmatch(number) else number


def scenario_of(query: Query, place: Place, prefix: str = "") -> Scenario:
    """The scenario that a query asks; ScenarioError says everything that is wrong with it."""
    return read_scenario(grounded(settings_of(query, prefix), place.uploads))


def mistake(settings: Mapping[str, Any], place: Place) -> str:
    """The mistake in the settings that fill a form; blank where there is none."""
    try:
        read_scenario(grounded(settings, place.uploads))
    except OrreryError as error:
        return str(error)
    return ""


def query_of(settings: Mapping[str, Any], prefix: str = "") -> str:
    """The query of some settings: ``model=…&tp=2``."""
    return urlencode([(prefix + key, _describe(value)) for key, each in settings.items() for value in _values(each)])


def _values(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else (() if value is None else (value,))  # pyright: ignore[reportUnknownVariableType]


def _describe(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _is_number(name: str) -> bool:
    return BY_NAME[name].kind in ("count", "number")
