"""Trees for devices that nobody measured: whether those of a measured sibling help, and where they do, of all siblings.

    python tools/fit/gemm_siblings.py --data ../shared/data

Run after ``gemm.py``. Each device of a generation is left out in turn: constants and trees come from the fit rows of
the others, and the calibrate rows of the one left out judge. Where the trees bring the mean |log error| below ``WORTH``
times, the generation's entry gets trees of all its devices on top of its pooled constants, and the interval that was
found with each left out. A generation with one measured device says nothing of siblings and gets none.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from gemm import THIN_ROWS, by_generation, fit_pool, own_constants, thinned
from gemm_learn import SIZES, corrected, stacked
from gemm_rows import CALIBRATE, FIT, Key, Rows, read_rows
from intervals import spread_of
from residual import save, train

from orrery.base.files import write_atomically
from orrery.base.sources import read_toml
from orrery.catalog.calibrations import FOLDER
from orrery.catalog.residuals import FOLDER as RESIDUALS
from orrery.catalog.residuals import generation_key, read_forests
from orrery.hardware.calibration import ResidualTrees

WORTH = 0.97
SHORT = (replace(SIZES[0], max_trees=60),)  # what siblings share is less than what a device tells of itself
HOW = "; trees of siblings, kept because they help each left out"

Groups = Mapping[Key, Rows]
Constants = Mapping[str, float]


def learned(groups: Groups, keys: list[Key], constants: Constants) -> ResidualTrees | None:
    """Trees on top of the constants that these devices share."""
    parts = [thinned(groups[k].on(FIT)) for k in keys]
    return train(*stacked(parts, [constants] * len(keys)), sizes=SHORT, num_folds=2)[0]


def left_out(
    groups: Groups, known: Mapping[Key, dict[str, float]], clans: Mapping[str, list[Key]]
) -> tuple[np.ndarray, np.ndarray]:
    """measured / predicted on the calibrate rows of each device, by what the others told: physics, and with trees."""
    bare, with_trees = [], []
    for device, mine in clans.items():
        others = [k for name, keys in clans.items() if name != device for k in keys]
        constants = fit_pool(groups, others, known)
        trees = learned(groups, others, constants)
        for held in (groups[k].on(CALIBRATE) for k in mine):
            bare.append(held.time_s / corrected(held, constants, None))
            with_trees.append(held.time_s / corrected(held, constants, trees))
    return np.concatenate(bare), np.concatenate(with_trees)


def plain(entry: Mapping[str, Any]) -> str:
    """What an entry was measured on, without the words of an earlier run of this tool."""
    return str(entry["at"]).removesuffix(HOW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--verdicts", type=Path, help="an earlier gemm.toml, whose verdicts stand: train only")
    arguments = parser.parse_args()
    groups, _ = read_rows(arguments.data)
    earlier = read_toml(arguments.verdicts)["calibration"] if arguments.verdicts else []
    verdicts = {(e["generation"], e["format"], e["engine"]): HOW in e["at"] for e in earlier if e.get("generation")}
    path, forests_path = FOLDER / "gemm.toml", RESIDUALS / "gemm.npz"
    raw = read_toml(path)
    known = own_constants(raw["calibration"])
    forests = {k: f for k, f in read_forests(forests_path).items() if k.split("|")[0] in {g[0] for g in groups}}
    taught = {key: rows for key, rows in groups.items() if "host_s" not in known[key] and len(rows.m) > THIN_ROWS}
    pools = {key: clans for key, clans in by_generation(taught).items() if len(clans) > 1}
    for entry in (e for e in raw["calibration"] if e.get("generation")):
        key = (entry["generation"], entry["format"], entry["engine"])
        if key not in pools:
            continue
        is_kept = verdicts.get(key, False)
        if not verdicts:
            bare, with_trees = left_out(groups, known, pools[key])
            before, after = (float(np.mean(np.abs(np.log(r)))) for r in (bare, with_trees))
            is_kept = after < WORTH * before
            entry["spread"] = spread_of(with_trees if is_kept else bare)
            print(f"{' '.join(key):40s} left out {before:.3f} -> {after:.3f}", flush=True)
        entry["at"] = plain(entry) + (HOW if is_kept else "")
        if is_kept and (trees := learned(groups, [k for c in pools[key].values() for k in c], entry["constants"])):
            forests["|".join((generation_key(key[0]), *key[1:]))] = trees
    save(forests_path, forests)
    write_atomically(path, f"# made by: python tools/fit/gemm.py, gemm_siblings.py\n{tomli_w.dumps(raw)}")


if __name__ == "__main__":
    main()
