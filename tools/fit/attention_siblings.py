"""Trees for devices that nobody measured: whether those of measured siblings help an attention rule, and if so, theirs.

    python tools/fit/attention_siblings.py --data ../shared/data

Run after ``attention.py`` and ``latent.py``. As ``gemm_siblings.py``: each device of a generation is left out in turn,
constants and trees come from the fit rows of the others, and its calibrate rows judge. Where trees bring the mean
|log error| below ``WORTH`` times, the generation's entry gets trees of all its devices on its pooled constants, and the
interval that was found with each left out.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attention import DECODE, PREFILL
from attention_fit import FOREST, Floats, Group, Rule, corrected, pool, read_groups, shapes, stored, write
from intervals import spread_of
from latent import DECODE as LATENT_DECODE
from latent import PREFILL as LATENT_PREFILL
from residual import save, train
from wide_tables import measured

from orrery.catalog.residuals import FOLDER as RESIDUALS
from orrery.catalog.residuals import generation_key, read_forests
from orrery.evidence.split import CALIBRATE, FIT
from orrery.hardware.calibration import ResidualTrees

WORTH = 0.97
HOW = "; trees of siblings, kept because they help each left out"
NUM_FOLDS = 3

Members = Sequence[tuple[Group, Mapping[str, float]]]


def learned(rule: Rule, members: Members, constants: Mapping[str, float]) -> ResidualTrees | None:
    """Trees on top of the constants that these devices share."""
    assert rule.features is not None
    parts, vector = [group.on(FIT) for group, _ in members], rule.vector(constants)
    x = np.concatenate([rule.features(g.columns, g.machine, vector) for g in parts])
    off = np.concatenate([np.log(g.time_s / g.predicted(rule, constants)) for g in parts])
    of_shape = np.concatenate([shapes(rule, g) for g in parts])
    return train(x, rule.feature_names, off, of_shape, sizes=FOREST, num_folds=NUM_FOLDS)[0]


def left_out(rule: Rule, members: Members) -> tuple[Floats, Floats]:
    """measured / predicted on each device's calibrate rows by what the others told: physics, and with trees."""
    bare: list[Floats] = []
    with_trees: list[Floats] = []
    for held, _ in members:
        others = [(g, c) for g, c in members if g is not held]
        constants, rows = pool(rule, others), held.on(CALIBRATE)
        bare.append(rows.time_s / corrected(rule, rows, constants, None))
        with_trees.append(rows.time_s / corrected(rule, rows, constants, learned(rule, others, constants)))
    return np.concatenate(bare), np.concatenate(with_trees)


def mend(rule: Rule, data: Path) -> None:
    """Judge, and where it is worth it change, every generation's entry of one op."""
    groups, _ = read_groups(measured(data, rule.op), rule)
    entries, path = stored(rule), RESIDUALS / f"{rule.op}.npz"
    own = {(e["device"], e["format"], e["engine"]): e["constants"] for e in entries if "device" in e}
    forests = {k: f for k, f in read_forests(path).items() if not k.startswith(generation_key(""))}
    for entry in (e for e in entries if e.get("generation")):
        kind = (entry["format"], entry["engine"])
        members = [
            (g, own[g.device.name, *kind])
            for g in groups
            if (g.format, g.engine) == kind and g.device.generation == entry["generation"]
        ]
        if len(members) > 1:
            judge(rule, entry, members, forests)
    save(path, forests)
    write(rule, "attention.py, latent.py, attention_siblings.py", entries)


def judge(rule: Rule, entry: dict[str, Any], members: Members, forests: dict[str, ResidualTrees]) -> None:
    """Give one generation's entry the trees of its members, if each left out gains by the others'."""
    bare, with_trees = left_out(rule, members)
    before, after = (float(np.mean(np.abs(np.log(r)))) for r in (bare, with_trees))
    is_kept = after < WORTH * before
    entry["at"] = str(entry["at"]).removesuffix(HOW) + (HOW if is_kept else "")
    entry["spread"] = spread_of(with_trees if is_kept else bare)
    if is_kept and (trees := learned(rule, members, entry["constants"])):
        forests["|".join((generation_key(entry["generation"]), entry["format"], entry["engine"]))] = trees
    name = " ".join((rule.op, entry["generation"], entry["format"], entry["engine"]))
    medians = [float(np.median(np.abs(1 / r - 1))) for r in (bare, with_trees)]
    print(f"{name:55s} mean {before:.3f} -> {after:.3f}, median {medians[0]:.3f} -> {medians[1]:.3f}", flush=True)


def main() -> None:
    """All ops that have trees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / ".." / "shared" / "data")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    for rule in (PREFILL, DECODE, LATENT_PREFILL, LATENT_DECODE):
        if arguments.only in (None, rule.op):
            mend(rule, arguments.data)


if __name__ == "__main__":
    main()
