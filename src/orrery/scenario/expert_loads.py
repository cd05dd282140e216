"""How tokens choose experts, as a user says it: ``balanced``, ``zipf:S``, or a file with the share of each expert."""

import csv
import json
from collections.abc import Iterable
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.kernels.ops import Popularity
from orrery.models.model import Model

MOST_EXPONENT = 4.0
MOST_BYTES = 1_000_000  # of a file: a few thousand experts, whatever the spelling


def expert_loads(word: str | None, model: Model) -> Popularity | None:
    """The law that a word means for a model; None for a blank. Says what to write where it makes no sense."""
    if not word:
        return None
    found = read_loads(word)
    counts = {b.experts.num_experts for b in model.blocks if b.experts}
    if not counts:
        raise ScenarioError(f"expert_loads: {model.name} has no experts; leave expert_loads out.")
    if found.shares and counts != {len(found.shares)}:
        wanted = " or ".join(map(str, sorted(counts)))
        raise ScenarioError(
            f"expert_loads: {word}: {len(found.shares)} shares, but {model.name} has {wanted} experts in a layer; "
            "write one share for each."
        )
    return found


def loads_word(loads: Popularity | None) -> str:
    """A law as a user writes it; what training takes where nothing is written."""
    if loads is None or loads.is_dealt:
        return "balanced"
    return "file" if loads.shares else f"zipf:{loads.exponent:g}"


@cache
def read_loads(word: str) -> Popularity:
    """``balanced``, ``zipf:S``, or a file."""
    kind, _, exponent = word.strip().casefold().partition(":")
    if kind == "balanced" and not exponent:
        return Popularity(is_dealt=True)
    if kind == "zipf":
        return Popularity(exponent=_exponent(word, exponent))
    path = Path(word.strip()).expanduser()
    if not path.is_file():
        raise ScenarioError(
            f"expert_loads: got {word!r}, which is no file; write balanced, zipf:S such as zipf:0.5, or the name of a "
            "file with one share for each expert."
        )
    return Popularity(shares=_shares(path))


def _exponent(word: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 <= value <= MOST_EXPONENT:
        raise ScenarioError(f"expert_loads: got {word!r}; write zipf:S with S from 0 to {MOST_EXPONENT:g}.")
    return value


def _shares(path: Path) -> tuple[float, ...]:
    """One load an expert: a JSON list, or numbers on lines or between commas."""
    if path.stat().st_size > MOST_BYTES:
        raise ScenarioError(f"expert_loads: {path.name} is larger than 1 MB; write one number for each expert.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        cells: Iterable[Any] = json.loads(text) if text.lstrip().startswith("[") else _cells(text)
        loads = tuple(float(cell) for cell in cells)
    except (OSError, ValueError, TypeError):
        raise ScenarioError(
            f"expert_loads: {path.name} is no list of numbers; write one load for each expert, on lines of their own "
            "or as a JSON list."
        ) from None
    if not loads or min(loads) < 0.0 or not all(map(isfinite, loads)) or sum(loads) <= 0.0:
        raise ScenarioError(f"expert_loads: {path.name}: loads must be finite, none below 0, and not all of them 0.")
    total = sum(loads)
    return tuple(load / total for load in loads)


def _cells(text: str) -> Iterable[str]:
    return [cell for row in csv.reader(text.splitlines()) for cell in row if cell.strip()]
