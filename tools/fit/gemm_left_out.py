"""How well the rule does on a device that it has never seen, with and without its relatives' trees, and after timings.

    python tools/fit/gemm_left_out.py --data ../shared/data

Constants come from the fit rows of the other devices of its generation, or of the other generations where it has no
sibling; so do the trees. The 10 or 40 shapes come from its own fit rows; errors are of its test rows.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gemm import figures, fit_pool
from gemm_few_shot import refit
from gemm_learn import SIZES, corrected, stacked
from gemm_rows import FIT, TEST, Key, Rows, read_rows
from residual import train

from orrery.base.cost import Spread
from orrery.catalog.calibrations import calibrations_for
from orrery.hardware.calibration import Calibration
from orrery.kernels.ops import Gemm

NUM_SHAPES = (10, 40)
COLUMNS = ("inherited", "with relatives' trees", *(f"after {n} shapes" for n in NUM_SHAPES), "and relatives' trees")
NO_SPREAD = Spread(low_80_ratio=1.0, high_80_ratio=1.0, low_95_ratio=1.0, high_95_ratio=1.0)


def shipped(groups: Mapping[Key, Rows]) -> dict[Key, dict[str, float]]:
    """The constants of every group as they stand in the catalogue."""
    return {
        key: dict(calibrations_for(key[0], rows.device.generation)["gemm", key[1], key[2]].constants)
        for key, rows in groups.items()
    }


def others(key: Key, groups: Mapping[Key, Rows]) -> list[Key]:
    """The groups of the same kernels on other devices: siblings of the generation, else everybody."""
    same = [k for k in groups if k[0] != key[0] and k[1:] == key[1:]]
    siblings = [k for k in same if groups[k].device.generation == groups[key].device.generation]
    return siblings or same


def after_few(rows: Rows, constants: Mapping[str, float], num_shapes: int) -> Mapping[str, float]:
    """Constants after so many timings of the device itself."""
    fit = rows.on(FIT)
    few = fit.take(np.random.default_rng(0).permutation(len(fit.m))[:num_shapes])
    found = Calibration(
        op="gemm", format=rows.format, engine=rows.engine, origin="generation", constants=constants, spread=NO_SPREAD
    )
    op = Gemm(
        m=few.m.astype(np.int64), n=few.n.astype(np.int64), k=few.k.astype(np.int64), format=rows.format, is_cold=False
    )
    return refit(op, few.time_s, rows.device, found)


def errors_without(rows: Rows, pool: list[Rows], constants: Mapping[str, float]) -> list[np.ndarray]:
    """|error| on the test rows in each of the columns, for constants that the ``pool`` of other devices told."""
    test = rows.on(TEST)
    trees, _ = train(*stacked([p.on(FIT) for p in pool], [constants] * len(pool)), sizes=SIZES, num_folds=4)
    few = [after_few(rows, constants, n) for n in NUM_SHAPES]
    ways = [(constants, None), (constants, trees), *((c, None) for c in few), (few[-1], trees)]
    return [np.abs(corrected(test, c, t) / test.time_s - 1) for c, t in ways]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    groups, _ = read_rows(parser.parse_args().data)
    known = shipped(groups)
    totals: dict[str, list[list[np.ndarray]]] = {"yes": [], "no": []}
    print(f"{'device left out':45s} {'sibling':8s} " + "  ".join(f"{c:22s}" for c in COLUMNS))
    for key, rows in sorted(groups.items()):
        if rows.is_timed_on_host or not (pool := others(key, groups)):
            continue
        kind = "yes" if groups[pool[0]].device.generation == rows.device.generation else "no"
        found = errors_without(rows, [groups[k] for k in pool], fit_pool(groups, pool, known))
        totals[kind].append(found)
        print(line(" ".join(key), kind, found), flush=True)
    for kind, parts in (*totals.items(), ("", [*totals["yes"], *totals["no"]])):
        print(line("all", kind, [np.concatenate(column) for column in zip(*parts, strict=True)]))


def line(name: str, kind: str, found: list[np.ndarray]) -> str:
    """Median, mean and 90th percentile in each column."""
    return f"{name:45s} {kind:8s} " + "  ".join(f"{figures(errors):22s}" for errors in found)


if __name__ == "__main__":
    main()
