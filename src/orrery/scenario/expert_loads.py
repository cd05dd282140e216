"""The user's routing law of tokens to experts.

``balanced``, ``zipf:S``, ``zipf:S+affinity:F`` (a share F of an expert's tokens follow its favourite in the next
layer), a file with the share of each expert, or a routing trace (``routing_trace``).
"""

from collections.abc import Iterable
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.user_file import is_user_file, read_user_text, user_path
from orrery.base.user_text import csv_lines, json_value
from orrery.execution.experts.routes import routes_of_law, routes_of_trace
from orrery.execution.routes import Routes
from orrery.kernels.ops import Popularity
from orrery.models.model import Model
from orrery.scenario.routing_trace import MAX_BYTES as MAX_TRACE_BYTES
from orrery.scenario.routing_trace import check_experts, is_trace, trace_of

MAX_EXPONENT = 4.0
MAX_BYTES = 1_000_000  # of a file: a few thousand experts, whatever the spelling
WHAT = "file with one number for each expert"


def expert_loads(word: str | None, model: Model) -> Popularity | None:
    """The law that a word means for a model; None for a blank. Says what to write where it makes no sense."""
    if not word:
        return None
    if (routes := expert_routes(word, model)) and routes.has_affinity:
        skew = 0.0 if routes.num_tokens else _law(word)[0]
        return Popularity(exponent=skew, layers=routes.shares)
    found = read_loads(word)
    counts = {b.experts.num_experts for b in model.blocks if b.experts}
    if not counts:
        raise ScenarioError(f"expert_loads: {model.name} has no experts; leave expert_loads out.")
    if found.shares and counts != {len(found.shares)}:
        expected = " or ".join(map(str, sorted(counts)))
        raise ScenarioError(
            f"expert_loads: {word}: {len(found.shares)} shares, but {model.name} has {expected} experts in a layer; "
            "write one share for each."
        )
    return found


def expert_routes(word: str | None, model: Model) -> Routes | None:
    """Which expert follows which, by a word; None where it does not say so, or the model has no experts.

    ``zipf:S`` says how popular experts are and that nothing follows anything; a list of shares says neither.
    """
    counts = {b.experts.num_experts for b in model.blocks if b.experts}
    if not word or len(counts) != 1:
        return None
    (experts,), layers = counts, sum(b.count for b in model.blocks if b.experts)
    if word.strip().casefold().startswith("zipf"):
        skew, followed = _law(word)
        return routes_of_law(experts, layers, skew, followed) if layers > 1 else None
    path = user_path(word.strip())
    if word.strip().casefold() == "balanced" or not is_user_file(path):
        return None
    return _routes_from(path, path.stat().st_mtime_ns, experts, layers, model.name)


@lru_cache(maxsize=8)
def _routes_from(path: Path, modified_ns: int, experts: int, layers: int, model: str) -> Routes | None:
    """``modified_ns`` only tells an edited file from the one read before."""
    text = read_user_text(path, WHAT, MAX_TRACE_BYTES)
    if not is_trace(text):
        return None
    chosen = trace_of(text, f"expert_loads: {path.name}")
    check_experts(chosen, experts, layers, path, model)
    return routes_of_trace(chosen, experts)


def _law(word: str) -> tuple[float, float]:
    """Exponent and followed share of ``zipf:S`` or ``zipf:S+affinity:F``."""
    law, plus, follows = word.strip().casefold().partition("+")
    skew = _exponent(word, law.partition(":")[2])
    name, _, share = follows.partition(":")
    try:
        followed = float(share) if plus else 0.0
    except ValueError:
        followed = float("nan")
    if (plus and name != "affinity") or not 0.0 <= followed <= 1.0:
        raise ScenarioError(
            f"expert_loads: got {word!r}; write zipf:S+affinity:F with F from 0 to 1, such as zipf:0.5+affinity:0.4."
        )
    return skew, followed


def loads_word(loads: Popularity | None) -> str:
    """A law as a user writes it; what training takes where nothing is written."""
    if loads is None or loads.is_dealt:
        return "balanced"
    if loads.layers:
        return "by layer"
    return "file" if loads.shares else f"zipf:{loads.exponent:g}"


def read_loads(word: str) -> Popularity:
    """``balanced``, ``zipf:S``, or a file."""
    kind, _, rest = word.strip().casefold().partition(":")
    if kind == "balanced" and not rest:
        return Popularity(is_dealt=True)
    if kind == "zipf":
        return Popularity(exponent=_law(word)[0])
    path = user_path(word.strip())
    if not is_user_file(path):
        raise ScenarioError(
            f"expert_loads: got {word!r}, which is no file; write balanced, zipf:S such as zipf:0.5, or the name of a "
            "file with one share for each expert."
        )
    return _from_file(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _from_file(path: Path, modified_ns: int) -> Popularity:
    """``modified_ns`` only tells an edited file from the one read before."""
    return Popularity(shares=_shares(path))


def _exponent(word: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 <= value <= MAX_EXPONENT:
        raise ScenarioError(f"expert_loads: got {word!r}; write zipf:S with S from 0 to {MAX_EXPONENT:g}.")
    return value


def _shares(path: Path) -> tuple[float, ...]:
    """One load an expert: a JSON list, or numbers on lines or between commas."""
    text, where = read_user_text(path, WHAT, MAX_TRACE_BYTES), f"expert_loads: {path.name}"
    if is_trace(text):
        chosen = trace_of(text, where)
        load = np.bincount(chosen.ravel())
        return tuple((load / load.sum()).tolist())
    if len(text) > MAX_BYTES:
        raise ScenarioError(f"{where}: is too long for a list of shares; write one load for each expert.")
    try:
        loads = tuple(float(cell) for cell in _cells(text, where))
    except (ScenarioError, ValueError, TypeError, OverflowError):
        raise ScenarioError(
            f"{where}: is no list of numbers; write one load for each expert, on lines of their own or as a JSON list."
        ) from None
    total = sum(loads)
    if not loads or min(loads) < 0.0 or not 0.0 < total < inf:
        raise ScenarioError(f"{where}: loads must be finite, none below 0, and not all of them 0.")
    return tuple(load / total for load in loads)


def _cells(text: str, where: str) -> Iterable[Any]:
    if text.lstrip().startswith("["):
        return json_value(text, where, "write one load for each expert")
    return [cell for _, row in csv_lines(text, where, most_columns=MAX_BYTES) for cell in row if cell.strip()]
