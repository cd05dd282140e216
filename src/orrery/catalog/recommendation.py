"""Models that rank items, by name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml
from orrery.models.recommendation import RecommendationModel

FILE = Path(__file__).parent / "facts" / "recommendation.toml"


@cache
def _models() -> Mapping[str, RecommendationModel]:
    tables: dict[str, dict[str, Any]] = read_toml(FILE)["models"]
    return {name: RecommendationModel(name=name, **_fields(table)) for name, table in tables.items()}


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    lists = ("bottom", "top", "rows", "lookups")
    return {key: tuple(value) if key in lists else value for key, value in table.items() if key != "from"}


def recommendation_names() -> tuple[str, ...]:
    """Return every model."""
    return tuple(_models())


def is_recommendation(name: str | None) -> bool:
    """Whether a name is of a model that ranks items."""
    return name is not None and name.casefold() in _models()


def get_recommendation(name: str) -> RecommendationModel:
    """The model of that name."""
    if (found := _models().get(name.casefold())) is None:
        raise UnknownName("model", name, _models())
    return found
