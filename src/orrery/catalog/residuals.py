"""Learned corrections: one file of trees an operation, ``facts/residuals/<op>.npz``, made by ``tools/fit``.

All forests of a file lie behind one another in the same arrays; ``keys`` says whose they are ("device|format|engine";
"generation=…" in place of the device for its unmeasured siblings), ``which`` the forest that each of them uses,
``forests`` where the roots of each begin and ``trees`` where the nodes of each tree begin.

Next to them ``<op>_spread.npz`` says how sure the rule is of each row: forests of the same make, and four ``levels`` a
key.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from orrery.hardware.calibration import ResidualTrees, RowSpread

FOLDER = Path(__file__).parent / "facts" / "residuals"


def generation_key(generation: str) -> str:
    """Return the key, in place of a device, of the trees that serve the unmeasured siblings of a generation."""
    return f"generation={generation}"


def residual_of(device: str, op: str, format: str, engine: str) -> ResidualTrees | None:
    """The trees that were trained on this very device, format and engine, if that earned its place."""
    return _forests(op).get(f"{device}|{format}|{engine}")


@cache
def _forests(op: str) -> Mapping[str, ResidualTrees]:
    path = FOLDER / f"{op}.npz"
    return read_forests(path) if path.exists() else {}


def row_spread_of(device: str, op: str, format: str, engine: str) -> RowSpread | None:
    """Spread of the rule by row on this device, where that scored better than one spread for all."""
    return _row_spreads(op).get(f"{device}|{format}|{engine}")


@cache
def _row_spreads(op: str) -> Mapping[str, RowSpread]:
    path = FOLDER / f"{op}_spread.npz"
    return read_row_spreads(path) if path.exists() else {}


def read_row_spreads(path: Path) -> dict[str, RowSpread]:
    """Every row spread of a file, by key."""
    forests = read_forests(path)
    with np.load(path) as stored:
        rows = zip(stored["keys"], stored["levels"].tolist(), strict=True)
    return {str(key): RowSpread(trees=forests[str(key)], levels=(a, b, c, d)) for key, (a, b, c, d) in rows}


def read_forests(path: Path) -> dict[str, ResidualTrees]:
    """Every forest of a file, by key."""
    with np.load(path) as stored:
        names = tuple(str(n) for n in stored["names"])
        keys, forests, trees, depths = (stored[k] for k in ("keys", "forests", "trees", "depths"))
        feature, threshold, low, value = (stored[k] for k in ("feature", "threshold", "low", "value"))
        which = stored["which"] if "which" in stored else np.arange(len(keys))
    found: list[ResidualTrees] = []
    for i in range(len(forests) - 1):
        mine = slice(int(forests[i]), int(forests[i + 1]))
        roots = trees[mine]
        nodes = slice(int(roots[0]), int(trees[mine.stop]))
        found.append(
            ResidualTrees(
                names=names,
                roots=(roots - roots[0]).astype(np.int32),
                depths=depths[mine].astype(np.int32),
                feature=feature[nodes].astype(np.int32),
                threshold=threshold[nodes].astype(np.float32),
                low=low[nodes].astype(np.int32),
                value=value[nodes].astype(np.float32),
            )
        )
    return {str(key): found[i] for key, i in zip(keys, which, strict=True)}
