"""Models that transcribe speech, by name."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml
from orrery.models.speech import SpeechModel

FILE = Path(__file__).parent / "facts" / "speech.toml"


@cache
def _models() -> Mapping[str, SpeechModel]:
    tables: dict[str, dict[str, Any]] = read_toml(FILE)["models"]
    return {
        name: SpeechModel(name=name, source=table["from"], **{k: v for k, v in table.items() if k != "from"})
        for name, table in tables.items()
    }


def speech_names() -> tuple[str, ...]:
    """Every model, as model hubs name it."""
    return tuple(_models())


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_.-]+", "", name.casefold())


def find_speech(name: str) -> str | None:
    """The catalogued name behind a spelling; None where it is no model of speech."""
    return _spellings().get(_squeezed(name))


@cache
def _spellings() -> Mapping[str, str]:
    return {_squeezed(spelled): name for name in _models() for spelled in (name, name.rsplit("/", 1)[-1])}


def get_speech(name: str) -> SpeechModel:
    """The model of that name in any spelling."""
    if (found := find_speech(name)) is None:
        raise UnknownName("model", name, speech_names())
    return _models()[found]
