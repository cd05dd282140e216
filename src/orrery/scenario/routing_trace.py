"""A routing trace: the experts that each token chose in every layer, as a CSV file.

The first line is ``token,layer,expert``. A line says that a token chose an expert in a layer (all counted from 0); the
lines of one token and layer stand in the order of its scores, the best first. Every token chooses as many experts in
every layer. The layers are those that have experts, first to last.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_text import csv_table
from orrery.execution.experts.routes import MIN_TOKENS

HEADER = ("token", "layer", "expert")
MAX_BYTES = 200_000_000  # some ten million choices
MAX_EXPERT = 65_536


def is_trace(text: str) -> bool:
    """Whether a text begins as a routing trace does."""
    first = text.lstrip().partition("\n")[0]
    return tuple(cell.strip() for cell in first.split(",")) == HEADER


def trace_of(text: str, where: str) -> NDArray[np.int64]:
    """The choices of a trace: tokens x layers x choices. ScenarioError says what is wrong, and where."""
    _, rows = csv_table(text, where)
    try:
        found = np.array([[int(cell) for cell in row] for row in rows], dtype=np.int64).reshape(-1, 3)
    except (ValueError, OverflowError):
        raise ScenarioError(
            f"{where}: holds what is no whole number; write token,layer,expert on every line."
        ) from None
    if len(found) == 0 or found.min() < 0 or found[:, 2].max() > MAX_EXPERT or found.max() > len(found) + MAX_EXPERT:
        raise ScenarioError(f"{where}: tokens, layers and experts are counted from 0, without gaps.")
    order = np.lexsort((np.arange(len(found)), found[:, 1], found[:, 0]))
    token, layer, expert = found[order].T
    tokens, layers = int(token.max()) + 1, int(layer.max()) + 1
    each, rest = divmod(len(found), tokens * layers)
    grid = np.arange(len(found)) // max(each, 1)
    if rest or not each or (token != grid // layers).any() or (layer != grid % layers).any():
        raise ScenarioError(
            f"{where}: {len(found):,} lines for {tokens:,} tokens and {layers:,} layers; every token must choose as "
            "many experts in every layer."
        )
    if tokens < MIN_TOKENS:
        raise ScenarioError(f"{where}: one token says nothing; write {MIN_TOKENS} or more.")
    return expert.reshape(tokens, layers, each)


def check_experts(chosen: NDArray[np.int64], num_experts: int, num_layers: int, path: Path, model: str) -> None:
    """Refuse a trace of another model."""
    layers, most = chosen.shape[1], int(chosen.max())
    if layers != num_layers:
        raise ScenarioError(
            f"expert_loads: {path.name}: {layers} layers, but {model} has {num_layers} with experts; write all of them."
        )
    if most >= num_experts:
        raise ScenarioError(
            f"expert_loads: {path.name}: expert {most}, but {model} has {num_experts} in a layer, counted from 0."
        )
