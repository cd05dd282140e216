"""The learned correction on top of an attention rule: trees on ratios and logs, only where they were measured."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.hardware.calibration import Calibration, ResidualTrees
from orrery.kernels.ops import Floats, Size
from orrery.kernels.residual import CAP, correction
from orrery.kernels.residual._kernel import total

CHUNK_ROWS = 16384  # features of so many rows stay in a core's cache

Features = Callable[..., Floats]
"""The kernel's columns and an array for its six rows, to the features of every row."""


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """All facts about (device, formats, engine) that do not depend on the sizes of an attention kernel."""

    calibration: Calibration
    machine: Floats
    constants: Floats
    trees: ResidualTrees | None
    within: tuple[tuple[int, float, float], ...]  # columns of sizes with the range that the trees saw


def ready_for(
    calibration: Calibration, machine: Floats, constants: Floats, columns: Sequence[str], features: Sequence[str]
) -> Ready:
    """A calibration with its trees, if they speak of these very features."""
    trees = calibration.residual
    within = tuple((i, *calibration.range[name]) for i, name in enumerate(columns) if name in calibration.range)
    known = trees if trees is not None and trees.names == tuple(features) else None
    return Ready(calibration, machine, constants, known, within)


def factor(
    features: Floats, trees: ResidualTrees, sizes: Sequence[Size], within: Sequence[tuple[int, float, float]]
) -> float:
    """The correction of one kernel whose sizes are plain numbers; ``features`` has one row."""
    out = np.empty(1)
    total(features, trees.roots, trees.depths, trees.feature, trees.threshold, trees.low, trees.value, out)
    log = min(CAP, max(-CAP, float(out[0])))
    for i, low, high in within:
        size = sizes[i]
        if not low <= size <= high:
            beyond = math.log2(max(low / max(size, 1), size / high))
            log *= max(0.0, 1.0 - beyond)
    return math.exp(log)


def corrected(
    features: Features,
    fixed: Sequence[object],
    trees: ResidualTrees,
    columns: Sequence[Size],
    within: Sequence[tuple[int, float, float]],
) -> Floats:
    """The kernel's six rows with the time corrected, a cache-full at a time."""
    count = len(columns[0])  # type: ignore[arg-type]
    rows = np.empty((6, count))
    for start in range(0, count, CHUNK_ROWS):
        part = [np.asarray(c)[start : start + CHUNK_ROWS] for c in columns]
        answer = np.empty((6, len(part[0])))
        x = features(*part, *fixed, answer)
        beyond = [(part[i].astype(np.float64), (low, high)) for i, low, high in within]
        answer[0] *= correction(x, trees, beyond)
        rows[:, start : start + CHUNK_ROWS] = answer
    return rows
