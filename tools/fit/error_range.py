"""Learn how sure the kernel rules are of each row, and write ``facts/residuals/<op>_spread.npz``.

    python tools/fit/error_range.py --data ../shared/data

Rows are those of the calibrate side, which had no part in fitting constants or trees. Small forests of the devices of
a generation tell the scale of |log(measured / predicted)|; four quantiles of the rest turn a scale into an interval.
Forests and quantiles are judged on shapes that they have not seen (folds), by the pinball loss of the four quantiles:
a device keeps one spread for all rows unless the forest brings that loss below ``WORTH`` times.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from learned_rows import Key, Rows, read
from numpy.typing import NDArray
from residual import flatten, folds, save
from sklearn.ensemble import HistGradientBoostingRegressor

from orrery.catalog.residuals import FOLDER
from orrery.evidence.split import CALIBRATE
from orrery.hardware.calibration import ResidualTrees, RowSpread
from orrery.kernels.residual.error_range import scales

Floats = NDArray[np.float64]

PROBABILITIES = np.array([0.1, 0.9, 0.025, 0.975])
NUM_FOLDS = 5
WORTH = 0.97
FEWEST_ROWS, FEWEST_SHAPES = 50, 5
"""Fewer rows or shapes to judge on say nothing of a group; it keeps its one spread."""
LEAST = 1e-3  # of |log error| over a group's median: nearer is a matter of luck


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a forest of scales minimises, and how big it is."""

    loss: str  # "gamma": the mean of |error|; "quantile": its 80th percentile
    num_trees: int = 40
    leaves: int = 8

    def grown(self, x: Floats, size: Floats) -> HistGradientBoostingRegressor:
        """A forest whose raw answer is the log of a scale."""
        is_gamma = self.loss == "gamma"
        return HistGradientBoostingRegressor(
            loss=self.loss,
            quantile=None if is_gamma else 0.8,
            learning_rate=0.1,
            max_iter=self.num_trees,
            max_leaf_nodes=self.leaves,
            max_depth=4,
            min_samples_leaf=20,
            l2_regularization=5.0,
            early_stopping=False,
            random_state=0,
        ).fit(x, size if is_gamma else np.log(size))


FORMS = (Form(loss="gamma"), Form(loss="quantile"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """The rows of one op that teach one forest: the same format and engine on the devices of a generation."""

    names: tuple[str, ...]
    features: Floats
    off: Floats  # log(measured / predicted)
    group: NDArray[np.int64]  # index into keys
    keys: tuple[Key, ...]
    shape: NDArray[np.str_]

    @property
    def size(self) -> Floats:
        """|off|, in units of the median of its own group, so that no device's noise teaches another's."""
        size = np.abs(self.off)
        medians = np.array([np.median(size[self.group == i]) for i in range(len(self.keys))])
        return np.maximum(size / np.maximum(medians[self.group], LEAST), LEAST)


def pools(rows: Sequence[Rows], op: str) -> list[Pool]:
    """The calibrate rows of an op, by generation, format and engine."""
    by_name: dict[tuple[str, str, str], list[Rows]] = {}
    for part in rows:
        if part.calibration.op == op and part.is_own and part.on(CALIBRATE).any():
            by_name.setdefault((part.device.generation, *part.key[1:]), []).append(part)
    return [_pool(parts) for parts in by_name.values()]


def _pool(parts: Sequence[Rows]) -> Pool:
    keys = tuple(dict.fromkeys(p.key for p in parts))
    held = [p.on(CALIBRATE) for p in parts]
    pairs = list(zip(parts, held, strict=True))
    return Pool(
        names=parts[0].names,
        keys=keys,
        features=np.concatenate([p.features[h] for p, h in pairs]),
        off=np.concatenate([p.off[h] for p, h in pairs]),
        group=np.concatenate([np.full(h.sum(), keys.index(p.key)) for p, h in pairs]),
        shape=np.concatenate([p.shape[h] for p, h in pairs]),
    )


def pinball(off: Floats, levels: Floats) -> Floats:
    """Mean pinball loss of the four quantiles, a number a row; ``levels`` has four columns."""
    above = off[:, None] - levels
    return np.mean(np.where(above > 0, PROBABILITIES * above, (PROBABILITIES - 1) * above), axis=1)


def levels_of(ratio: Floats) -> Floats:
    """The four quantiles. Moved outwards for the few shapes behind them, as conformal prediction would, they lose."""
    return np.quantile(ratio, PROBABILITIES)


def unseen_scales(pool: Pool, form: Form, fold: NDArray[np.int64]) -> Floats:
    """The scale of every row by a forest that has not seen its shape."""
    out, size = np.ones(len(pool.off)), pool.size
    for held in range(NUM_FOLDS):
        mine = fold == held
        if mine.any():
            model = form.grown(pool.features[~mine], size[~mine])
            out[mine] = scales_by(model, form, pool.names, pool.features[mine])
    return out


def scales_by(model: HistGradientBoostingRegressor, form: Form, names: tuple[str, ...], x: Floats) -> Floats:
    """The scales as the shipped form of a forest gives them."""
    return scales(x, RowSpread(trees=flatten(model, form.num_trees, names), levels=(0.0, 0.0, 0.0, 0.0)))


def losses(pool: Pool, scale: Floats, fold: NDArray[np.int64]) -> Floats:
    """Mean pinball loss of every group, its levels taken from the other folds; NaN where too little is known."""
    out = np.full(len(pool.keys), np.nan)
    for i in range(len(pool.keys)):
        mine = np.flatnonzero(pool.group == i)
        if mine.size < FEWEST_ROWS or len(np.unique(pool.shape[mine])) < FEWEST_SHAPES:
            continue
        loss: list[Floats] = []
        for held in np.unique(fold[mine]):
            there, here = mine[fold[mine] != held], mine[fold[mine] == held]
            levels = levels_of(pool.off[there] / scale[there])
            loss.append(pinball(pool.off[here], levels * scale[here, None]))
        out[i] = np.concatenate(loss).mean()
    return out


def learn(pool: Pool) -> tuple[dict[Key, RowSpread], list[str]]:
    """The row spreads that earn their place, and a line about every group."""
    fold = folds(pool.shape, NUM_FOLDS)
    plain = losses(pool, np.ones(len(pool.off)), fold)
    judged = np.isfinite(plain)
    if not judged.any():
        return {}, [f"{' '.join(key)}: too few shapes to tell" for key in pool.keys]
    tried = {form: unseen_scales(pool, form, fold) for form in FORMS}
    loss = {form: losses(pool, scale, fold) for form, scale in tried.items()}
    form = min(FORMS, key=lambda f: float(np.sum(loss[f][judged] / plain[judged])))
    trees = flatten(form.grown(pool.features, pool.size), form.num_trees, pool.names)
    found: dict[Key, RowSpread] = {}
    lines: list[str] = []
    for i, key in enumerate(pool.keys):
        share = loss[form][i] / plain[i]
        if share < WORTH:
            found[key] = RowSpread(trees=trees, levels=_levels(pool, tried[form], i))
        lines.append(
            f"{' '.join(key):45s} {form.loss:8s} loss {share:5.2f} of one spread for all"
            f"{'' if key in found else ', not used'}"
        )
    return found, lines


def _levels(pool: Pool, scale: Floats, group: int) -> tuple[float, float, float, float]:
    mine = pool.group == group
    low_80, high_80, low_95, high_95 = levels_of(pool.off[mine] / scale[mine])
    return float(low_80), float(high_80), float(low_95), float(high_95)


def write(path: Path, found: Mapping[Key, RowSpread]) -> None:
    """All row spreads of an op in one file; nothing where there are none."""
    if not found:
        return path.unlink(missing_ok=True)
    forests: dict[str, ResidualTrees] = {"|".join(key): spread.trees for key, spread in found.items()}
    return save(path, forests, levels=np.array([spread.levels for spread in found.values()], np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    rows = read(parser.parse_args().data)
    for op in sorted({r.calibration.op for r in rows if r.is_own}):
        found: dict[Key, RowSpread] = {}
        for pool in pools(rows, op):
            more, lines = learn(pool)
            found |= more
            print("\n".join(f"{op:24s} {line}" for line in lines), flush=True)
        write(FOLDER / f"{op}_spread.npz", found)


if __name__ == "__main__":
    main()
