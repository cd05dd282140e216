"""Train trees on what the power rule leaves over, and their row spreads: ``facts/residuals/power*.npz``.

    python tools/fit/power_learn.py --data ../shared/data

Rows, folds and judges are those of the kernels' times (``residual.py``, ``error_range.py``): trees from the fit side,
where inner folds say that they help; intervals from the calibrate side. Run after ``energy.py``. How long a kernel
takes is no feature: the meter averages over longer than short runs last, and a tree would learn the meter.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from error_range import FEWEST_ROWS, PROBABILITIES, Pool, learn, write
from learned_rows import Key, Rows, read
from numpy.typing import NDArray
from residual import Size, save, train

from orrery.catalog.residuals import FOLDER
from orrery.evidence.split import CALIBRATE, FIT
from orrery.hardware.calibration import ResidualTrees, RowSpread
from orrery.kernels.energy import rule
from orrery.kernels.energy.learned import NAMES, OPS
from orrery.kernels.residual import correction

Floats = NDArray[np.float64]

SIZES = (
    Size(max_leaf_nodes=8, max_depth=4, min_samples_leaf=12, learning_rate=0.1, max_trees=80),
    Size(max_leaf_nodes=12, max_depth=5, min_samples_leaf=12, learning_rate=0.1, max_trees=80),
)


def rates(rows: Rows) -> tuple[Floats, Floats]:
    """Operations and bytes a second, as predicted."""
    return rows.timing.flops / rows.timing.time_s, rows.timing.bytes / rows.timing.time_s


def features(rows: Rows) -> Floats:
    """What the shipped rule hands to the trees."""
    return rule.kernel_features(rows.device, rows.op.format, *rates(rows), rows.kind)


def off(rows: Rows, op: str = "") -> Floats:
    """log(measured / predicted): the rule alone, or with the stored trees for ``op``."""
    return np.log(rows.power_w / rule.power_w(rows.device, rows.op.format, *rates(rows), op))


def key_of(rows: Rows) -> Key:
    """Whose power constants answer."""
    found = rule.calibration(rows.device, rows.op.format)
    return rows.device.name, found.format, found.engine


def with_power(rows: Sequence[Rows]) -> list[Rows]:
    """Groups that state power, in a format whose own constants answer."""
    return [r for r in rows if np.isfinite(r.power_w).any() and r.kind in OPS and r.op.format == key_of(r)[1]]


def stacked(parts: Sequence[Rows], side: str) -> tuple[Floats, Floats, NDArray[np.str_], NDArray[np.int64], list[Key]]:
    """Features, log errors of the rule, shapes, and the group of every row of one side."""
    keys = list(dict.fromkeys(key_of(p) for p in parts))
    at = [(p, (p.side == side) & np.isfinite(p.power_w)) for p in parts]
    x = np.concatenate([features(p)[mine] for p, mine in at])
    y = np.concatenate([off(p)[mine] for p, mine in at])
    shape = np.concatenate([np.char.add(f"{p.kind}|", p.shape[mine]) for p, mine in at])
    group = np.concatenate([np.full(mine.sum(), keys.index(key_of(p))) for p, mine in at])
    return x, y, shape, group, keys


def one_for_all(off: Floats, group: NDArray[np.int64], keys: Sequence[Key]) -> dict[Key, RowSpread]:
    """One spread for all rows of a group (of all groups where it has few), which the constants' own is no longer."""
    found: dict[Key, RowSpread] = {}
    for i, key in enumerate(keys):
        mine = off[group == i]
        levels = np.quantile(mine if mine.size >= FEWEST_ROWS else off, PROBABILITIES)
        found[key] = RowSpread(trees=FLAT, levels=(levels[0], levels[1], levels[2], levels[3]))
    return found


FLAT = ResidualTrees(
    names=NAMES,
    roots=np.zeros(1, np.int32),
    depths=np.zeros(1, np.int32),
    feature=np.zeros(1, np.int32),
    threshold=np.full(1, np.inf, np.float32),
    low=np.zeros(1, np.int32),
    value=np.zeros(1, np.float32),
)
"""A forest that finds all rows alike."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    rows = with_power(read(parser.parse_args().data, ("kernel_power",)))
    forests: dict[str, ResidualTrees] = {}
    sure: dict[Key, RowSpread] = {}
    for generation in sorted({r.device.generation for r in rows}):
        parts = [r for r in rows if r.device.generation == generation]
        x, y, shape, _, keys = stacked(parts, FIT)
        trees, report = train(x, NAMES, y, shape, sizes=SIZES)
        print(
            f"{generation:12s} unseen shapes {report.without:.3f} -> {report.with_trees:.3f}, "
            f"{report.num_trees} trees{'' if trees else ', not worth it'}",
            flush=True,
        )
        if trees is None:
            continue
        forests |= {"|".join(key): trees for key in keys}
        x, y, shape, group, keys = stacked(parts, CALIBRATE)
        y = y - np.log(correction(x, trees))
        found, lines = learn(Pool(names=NAMES, features=x, off=y, group=group, keys=tuple(keys), shape=shape))
        sure |= one_for_all(y, group, keys) | found
        print("\n".join(lines), flush=True)
    if forests:
        save(FOLDER / "power.npz", forests)
    write(FOLDER / "power_spread.npz", sure)


if __name__ == "__main__":
    main()
