"""How well the rule does on a device that it has never seen, and after 40 timed shapes of it.

    python tools/fit/gemm_left_out.py --data ../shared/data

Constants come from the fit rows of the other devices of its generation, or of the other generations where it has no
sibling. The 40 shapes come from its own fit rows; errors are of its test rows.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gemm import figures, fit_pool
from gemm_fit import predicted
from gemm_rows import FIT, TEST, Key, Rows, read_rows

from orrery.base.cost import Spread
from orrery.catalog.calibrations import calibrations_for
from orrery.hardware.calibration import Calibration
from orrery.kernels.gemm.few_shot import refit
from orrery.kernels.ops import Gemm

NUM_SHAPES = 40
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


def after_few(rows: Rows, constants: Mapping[str, float]) -> Mapping[str, float]:
    """Constants after ``NUM_SHAPES`` timings of the device itself."""
    fit = rows.on(FIT)
    few = fit.take(np.random.default_rng(0).permutation(len(fit.m))[:NUM_SHAPES])
    found = Calibration(
        op="gemm", format=rows.format, engine=rows.engine, origin="generation", constants=constants, spread=NO_SPREAD
    )
    op = Gemm(
        m=few.m.astype(np.int64), n=few.n.astype(np.int64), k=few.k.astype(np.int64), format=rows.format, is_cold=False
    )
    return refit(op, few.time_s, rows.device, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    groups, _ = read_rows(parser.parse_args().data)
    known = shipped(groups)
    totals: dict[str, list[np.ndarray]] = {}
    print(f"{'device left out':45s} {'sibling':8s} {'never seen':22s} after {NUM_SHAPES} shapes")
    for key, rows in sorted(groups.items()):
        if key[2] == "vllm" or not (pool := others(key, groups)):
            continue
        kind = "yes" if groups[pool[0]].device.generation == rows.device.generation else "no"
        test, unseen = rows.on(TEST), fit_pool(groups, pool, known)
        before, after = (np.abs(predicted(test, c) / test.time_s - 1) for c in (unseen, after_few(rows, unseen)))
        for name, errors in ((f"{kind} before", before), (f"{kind} after", after)):
            totals.setdefault(name, []).append(errors)
        print(f"{' '.join(key):45s} {kind:8s} {figures(before)}  {figures(after)}", flush=True)
    for kind in ("yes", "no"):
        before, after = (np.concatenate(totals[f"{kind} {when}"]) for when in ("before", "after"))
        print(f"{'all':45s} {kind:8s} {figures(before)}  {figures(after)}")
    before, after = (np.concatenate(totals[f"yes {w}"] + totals[f"no {w}"]) for w in ("before", "after"))
    print(f"{'all':45s} {'':8s} {figures(before)}  {figures(after)}")


if __name__ == "__main__":
    main()
