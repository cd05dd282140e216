"""Forests on what the GEMM rule leaves over: one for the devices of a generation, so that twins teach each other."""

from collections.abc import Mapping

import numpy as np
from gemm_fit import Floats
from gemm_rows import FIT, Key, Rows
from residual import Size, train

from orrery.base.units import percent
from orrery.hardware.calibration import ResidualTrees
from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.gemm.machine import constants_vector
from orrery.kernels.gemm.rule import features
from orrery.kernels.gemm.tiles import tile_set
from orrery.kernels.residual import correction

SIZES = (
    Size(max_leaf_nodes=20, max_depth=8, learning_rate=0.07, min_samples_leaf=5, max_trees=120, features_frac=0.5),
)
FEWEST_ROWS = 100
"""Fewer rows, or rows that a host's launches hide, teach no trees."""
ONE_LIBRARY = ("bf16",)  # formats that every engine leaves to the vendor's library


def rule_rows(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """The kernel's columns under the conditions of the measurement."""
    out = np.zeros((len(rows.m), kernel.COLUMNS))
    vector, tiles = constants_vector(constants), tile_set(constants["tile_set"])
    kernel.many(rows.m, rows.n, rows.k, rows.batch, vector, rows.machine(), tiles, False, rows.quantises, out)
    return out


def corrected(rows: Rows, constants: Mapping[str, float], trees: ResidualTrees | None) -> Floats:
    """Times by the rule, and by the trees where there are any."""
    out = rule_rows(rows, constants)
    if trees is None:
        return out[:, kernel.TIME]
    x = features(rows.m, rows.n, rows.k, out, rows.machine())
    return np.maximum(out[:, kernel.TIME] * correction(x, trees), out[:, kernel.COMPUTE])


def train_all(groups: Mapping[Key, Rows], known: Mapping[Key, Mapping[str, float]]) -> dict[Key, ResidualTrees]:
    """The forests that earn their place on shapes that they have not seen, by group."""
    pools: dict[tuple[str, str, str], list[Key]] = {}
    for key, rows in groups.items():
        if "host_s" in known[key] or len(rows.on(FIT).m) < FEWEST_ROWS:
            continue
        library = "" if key[1] in ONE_LIBRARY else key[2]
        pools.setdefault((rows.device.generation, key[1], library), []).append(key)
    found: dict[Key, ResidualTrees] = {}
    for name, keys in sorted(pools.items()):
        rows = stacked([groups[k].on(FIT) for k in keys], [known[k] for k in keys])
        trees, report = train(*rows, sizes=SIZES, num_folds=4)
        print(
            f"{' '.join(name):40s} unseen shapes {percent(report.without, 1)} -> {percent(report.with_trees, 1)}, "
            f"{report.num_trees} trees{'' if trees else ', not worth it'}",
            flush=True,
        )
        found |= dict.fromkeys(keys, trees) if trees else {}
    return found


def stacked(parts: list[Rows], constants: list[Mapping[str, float]]) -> tuple[Floats, tuple[str, ...], Floats, Floats]:
    """Features, their names, log(measured / rule), and a number for each weight shape."""
    x, target, shape = [], [], []
    for rows, values in zip(parts, constants, strict=True):
        out = rule_rows(rows, values)
        x.append(features(rows.m, rows.n, rows.k, out, rows.machine()))
        target.append(np.log(rows.time_s / out[:, kernel.TIME]))
        shape.append(rows.n * 2.0**20 + rows.k)
    return np.concatenate(x), kernel.FEATURES, np.concatenate(target), np.concatenate(shape)
