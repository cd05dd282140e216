"""How far predictions of training runs are from the truth: widths for a framework by how much of it has been seen.

A framework on a generation of devices that it has been fitted on: the rows that set intervals, widened by how far the
middle of one table stands from the truth, since the next run is in no table; and that by as much as tables need that
are left out of their framework's rows, since those differ by their tables already. Any other framework or generation:
the rows of every framework, predicted without what that framework taught, each counting as much as any other. Constants
of devices go with a framework that most of their rows came from.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.split import CALIBRATE, FIT

Floats = NDArray[np.float64]
Key = tuple[str, str, str]
Theta = dict[str, float]
Known = dict[Key, Theta]

KINDS = ("pretrain", "small", "finetune")
MIN_ROWS, MIN_LEFT_OUT, MIN_GROUPS = 12, 3, 2
"""Rows that make an interval of their own, rows of a group that count where it is left out, and such groups."""

LEVELS = (0.1, 0.9, 0.025, 0.975)
NAMES = ("low_80", "high_80", "low_95", "high_95")
NORMAL = np.array([-1.2816, 1.2816, -1.96, 1.96])
LEAST = np.array([0.985, 1.015, 0.97, 1.03])
ROBUST = 1.4826  # standard deviation over the median distance from zero, of normal errors
CLAIMED = 0.8
WEIGHTS = np.linspace(0.0, 2.0, 81)


class Run(Protocol):
    """A measured row: its table, its side, the kind of its work, and framework, generation and precision."""

    file: str
    side: str
    kind: str

    @property
    def key(self) -> Key: ...


Error = Callable[[Sequence[Run], Known], Floats]
"""log(measured / predicted) of rows, with the constants that some knowledge gives them."""


def spreads(runs: Sequence[Run], known: Known, error: Error) -> dict[Key, dict[str, dict[str, float]]]:
    """Intervals by entry and kind of work, of rows that state one metric."""
    seen = [r for r in runs if r.side in (FIT, CALIBRATE)]
    errors = error(seen, known)
    deviation = tables_s(seen, errors)
    deviation *= tables_weight(seen, errors, deviation)
    out: dict[Key, dict[str, dict[str, float]]] = defaultdict(dict)
    for kind in KINDS:
        mine = [r for r in seen if r.kind == kind]
        frameworks = left_out(mine, known, error)
        if len(frameworks) >= MIN_GROUPS:
            out["", "", ""][kind] = _named(np.exp(levels(list(frameworks.values()), is_new=True)))
        for key in sorted({(*r.key[:2], "") for r in mine}):
            inside = np.array([r.side == CALIBRATE and _serves(key, r) and r.kind == kind for r in seen])
            if inside.sum() >= MIN_ROWS:
                out[key][kind] = _named(np.exp(widened(levels([errors[inside]]), deviation)))
    return out


def coverage(runs: Sequence[Run], known: Known, error: Error) -> dict[tuple[str, str], tuple[int, float]]:
    """Rows of each framework and kind of work, and their share in the 80 % interval that all others alone would set."""
    out: dict[tuple[str, str], tuple[int, float]] = {}
    for kind in KINDS:
        each = left_out([r for r in runs if r.side in (FIT, CALIBRATE) and r.kind == kind], known, error)
        for name in each if len(each) > MIN_GROUPS else ():
            others = [errors for other, errors in each.items() if other != name]
            low, high = levels(others, is_new=True)[:2]
            out[name, kind] = each[name].size, float(np.mean((each[name] >= low) & (each[name] <= high)))
    return out


def left_out(runs: Sequence[Run], known: Known, error: Error) -> dict[str, Floats]:
    """Errors of each framework's rows without what the framework taught."""
    by: dict[str, list[Run]] = defaultdict(list)
    for r in runs:
        by[r.key[0]].append(r)
    return {
        name: error(mine, without(known, runs, name)) for name, mine in sorted(by.items()) if len(mine) >= MIN_LEFT_OUT
    }


def without(known: Known, runs: Sequence[Run], name: str) -> Known:
    """Knowledge without a framework, and without devices that it has most of the fit rows of."""
    out: Known = {}
    for key, theta in known.items():
        rows = [r for r in runs if r.side == FIT and _serves(key, r)]
        has_most = bool(key[1]) and 2 * sum(r.key[0] == name for r in rows) > len(rows)
        if not (key[0] == name or (not key[0] and has_most)):
            out[key] = theta
    return out


def tables_s(runs: Sequence[Run], errors: Floats) -> float:
    """How far the middle of a table stands from the truth on rows that no constant was fitted to: as a deviation."""
    by: dict[str, list[float]] = defaultdict(list)
    for r, e in zip(runs, errors, strict=True):
        if r.side == CALIBRATE:
            by[r.file].append(float(e))
    middles = [abs(float(np.median(rows))) for rows in by.values()]
    return ROBUST * float(np.median(middles)) if middles else 0.0


def tables_weight(runs: Sequence[Run], errors: Floats, deviation: float) -> float:
    """Multiple of the deviation with which as much of a table as claimed is inside the interval of its framework's
    other tables, on a generation and for a kind of work; the mean over tables. 1 where no framework has two.
    """
    by: dict[tuple[Key, str], list[tuple[str, float]]] = defaultdict(list)
    for r, e in zip(runs, errors, strict=True):
        if r.side == CALIBRATE:
            by[(*r.key[:2], ""), r.kind].append((r.file, float(e)))
    pairs: list[tuple[Floats, Floats]] = []
    for rows in by.values():
        files, found = np.array([f for f, _ in rows]), np.array([e for _, e in rows])
        for file in np.unique(files):
            one, others = found[files == file], found[files != file]
            if one.size >= MIN_LEFT_OUT and others.size >= MIN_LEFT_OUT:
                pairs.append((one, levels([others])))
    if not pairs:
        return 1.0
    shares = [float(np.mean([_inside(one, widened(x, w * deviation)) for one, x in pairs])) for w in WEIGHTS]
    return float(WEIGHTS[next((i for i, share in enumerate(shares) if share >= CLAIMED), -1)])


def _inside(errors: Floats, quantiles: Floats) -> float:
    """Share of errors in the 80 % interval."""
    return float(np.mean((errors >= quantiles[0]) & (errors <= quantiles[1])))


def levels(groups: Sequence[Floats], is_new: bool = False) -> Floats:
    """Quantiles of errors, every group weighing as much as any other.

    Of a new group nothing is known: it weighs as much as each, half of it beyond either end (conformal prediction of
    groups, as in Dunn, Wasserman and Ramdas, arXiv:1809.07441), so few groups make a wide interval.
    """
    errors = np.concatenate(groups)
    weights = np.concatenate([np.full(g.size, 1.0 / g.size) for g in groups])
    order = np.argsort(errors)
    reached = np.cumsum(weights[order]) - 0.5 * weights[order]
    share = (np.array(LEVELS) * (len(groups) + 1.0) - 0.5) / len(groups) if is_new else np.array(LEVELS)
    return np.interp(share, reached / weights.sum(), errors[order])


def widened(found: Floats, deviation: float) -> Floats:
    """Log quantiles with another independent error beside them."""
    return np.sign(NORMAL) * np.hypot(np.maximum(np.sign(NORMAL) * found, 0.0), deviation * NORMAL)


def _named(quantiles: Floats) -> dict[str, float]:
    """Quantiles of measured / predicted by name; 1 itself is always inside."""
    held = np.where(LEAST < 1, np.minimum(quantiles, LEAST), np.maximum(quantiles, LEAST))
    return dict(zip(NAMES, (float(f"{x:.4g}") for x in held), strict=True))


def _serves(key: Key, run: Run) -> bool:
    """Whether an entry speaks of a run."""
    return all(k in ("", w) for k, w in zip(key, run.key, strict=True))
