"""Charts of popular models that were computed ahead, by ``tools/landing.py``."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from orrery.web.landing.choices import MODELS, TRAFFIC
from orrery.web.landing.points import Rows

FOLDER = Path(__file__).parent / "computed"


def file_of(model: str) -> Path:
    """The file of one popular model."""
    return FOLDER / f"{model}.json"


def is_shipped(model: str, engine: str, traffic: str) -> bool:
    """Whether the chart of a model was computed ahead."""
    return traffic == next(iter(TRAFFIC)) and engine in _read(model).get("engines", {})


def shipped(model: str, engine: str) -> dict[str, dict[str, Rows]]:
    """The rows of a popular model on an engine, by device and class of formats."""
    found: dict[str, dict[str, Rows]] = _read(model)["engines"][engine]
    return found


def published(model: str, engine: str, traffic: str) -> list[dict[str, Any]]:
    """Published runs of a popular model on an engine, each with what is predicted for it."""
    runs: list[dict[str, Any]] = _read(model).get("published", [])
    return [run for run in runs if run["engine"] == engine and run["traffic"] == traffic]


def version_of(model: str) -> str:
    """The version of what a model's rows were computed from."""
    return str(_read(model).get("version", ""))


@lru_cache(maxsize=len(MODELS))
def _read(model: str) -> dict[str, Any]:
    known = any(m.key == model for m in MODELS)
    path = file_of(model)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if known and path.is_file() else {}
    return found
