"""Fit the MoE constants from the measured tables: ``python tools/fit/moe.py [--data DIR]``.

For every device, format and back end (as an engine calls it): constants on the fit rows, quantiles of
measured/predicted on the calibrate rows, errors printed on the test rows. Generations pool their devices; their
interval is that of a device left out.
"""

import argparse
from collections.abc import Callable, Sequence
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import residual
from kernel_scores import Score, Spread, baseline, print_scores, quantiles, write_calibrations
from moe_rows import SIZES, Rows, on, read, screen, sizes_of
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.sources import read_toml
from orrery.catalog.residuals import read_forests
from orrery.evidence.split import CALIBRATE, FIT, TEST
from orrery.hardware.calibration import ResidualTrees
from orrery.kernels.moe import _kernel as kernel
from orrery.kernels.moe.rule import constants_vector
from orrery.kernels.residual import correction
from orrery.kernels.resolve import is_as_wide, kernel_of

Floats = NDArray[np.float64]

START = {
    "overhead_s": (2e-6, 2e-5, 3e-4),
    "plain_overhead_s": (2e-6, 3e-5, 3e-4),
    "expert_s": (1e-10, 5e-8, 1e-5),
    "peak_frac": (0.1, 0.8, 1.0),
    "bandwidth_frac": (0.2, 0.8, 1.0),
    "row_ratio": (0.02, 0.5, 10.0),
    "token_ratio": (0.02, 0.5, 20.0),
    "fill_elements": (1.0, 100.0, 4000.0),
    "cache_ratio": (0.01, 0.5, 4.0),
    "uneven_frac": (0.001, 0.05, 0.5),
}
"""Lowest, first and highest value of every constant; rates may not pass the datasheet."""

LOW, FIRST, HIGH = (np.log([START[n][i] for n in START]) for i in range(3))
Choice = tuple[float, float, float]
CHOICES: tuple[Choice, ...] = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Values of sees_all, runs_all and passes_all."""

SIZE = residual.Size(max_leaf_nodes=12, max_depth=5, learning_rate=0.25, max_trees=24)
MIN_SLICES = 8  # with fewer slices of experts, inner folds cannot tell learning from remembering

WORTH = 0.97  # of the error without them: trees that bring less are left out

MAX_LEARNED = 900  # rows of a group that its trees learn from

MIN_SLICES = 4
"""Slices of experts below which constants have to show that they are better than those of the same kernel called by
another engine, or in a format as wide: fewer slices may not tell bandwidth, products and overheads apart."""

MIN_FITTED = 10  # rows that the constants of a device, their interval and their error rest on, at least

MAX_FITTED = 200  # rows of a group that its constants are fitted on: more change them little
PRIOR_SLICES = 0.3
"""The first values count as much as this share of a slice of experts: they decide what one slice leaves open."""

LOSS_SCALE = 0.1  # relative error beyond which a row counts less: mistuned kernels in the tables are up to 10x slow


def fit(parts: Sequence[Rows], choice: Choice) -> tuple[Floats, float]:
    """The constants that serve all parts best, every part with the same say, and the loss that is left."""
    parts = [thinned(p) for p in parts if p.time_s.size]
    pull = np.sqrt(PRIOR_SLICES / sum(int(p.slices().max()) + 1 for p in parts))

    def residuals(x: Floats) -> Floats:
        constants = np.append(np.exp(x), choice)
        errors = [np.log(p.predict(constants) / p.time_s) / LOSS_SCALE for p in parts]
        return np.concatenate([*(np.sign(e) * _soft(e) / np.sqrt(e.size) for e in errors), pull * (x - FIRST)])

    found = least_squares(residuals, FIRST, bounds=(LOW, HIGH), max_nfev=30, diff_step=1e-4)
    best = np.append(np.exp(found.x), choice)
    if not any(np.size(p.op[0].tokens) for p in parts):
        best[1] = best[0]  # no plain blocks measured: they launch as many kernels as gated ones
    return best, float(found.cost)


def thinned(rows: Rows) -> Rows:
    """At most MAX_FITTED rows, evenly over the whole."""
    keep = np.zeros(rows.time_s.size, dtype=bool)
    keep[np.unique(np.linspace(0, keep.size - 1, min(keep.size, MAX_FITTED)).astype(int))] = True
    return rows if keep.all() else rows.take(keep)


def choose(parts: Sequence[Rows]) -> Choice:
    """How the kernels of a format and engine pick tiles and treat remote experts: what serves all devices best."""
    return min(CHOICES, key=lambda choice: fit([on(p, FIT) for p in parts], choice)[1])


def _soft(error: Floats) -> Floats:
    """Square root of the soft absolute loss, so that squares of it add up to that loss."""
    return np.sqrt(2.0 * (np.sqrt(1.0 + error**2) - 1.0))


def entry(
    rows: Sequence[Rows], owner: tuple[str, str], constants: Floats, spread: Spread, at: str
) -> dict[str, object]:
    """One ``[[calibration]]``."""
    sizes = np.concatenate([sizes_of(r) for r in rows], axis=1)
    spans = {s: [float(sizes[i].min()), float(sizes[i].max())] for i, s in enumerate(SIZES) if s != "skew"}
    named = dict(zip(kernel.CONSTANTS, (float(f"{c:.4g}") for c in constants), strict=True))
    return {
        owner[0]: owner[1],
        "op": "moe",
        "format": rows[0].format,
        "engine": rows[0].engine,
        "from": "aiconfigurator",
        "at": at,
        "constants": named,
        "spread": spread,
        "range": spans,
    }


def ratios(rows: Rows, constants: Floats) -> Floats:
    """Measured over predicted."""
    return rows.time_s / rows.predict(constants)


def left_out(parts: Sequence[Rows], choice: Choice, key: Callable[[Rows], str]) -> Floats:
    """Measured/predicted on calibrate rows of every part, by constants of the parts with another key."""
    out: list[Floats] = []
    for name in sorted({key(p) for p in parts}):
        others = [on(p, FIT) for p in parts if key(p) != name]
        if others:
            constants, _ = fit(others, choice)
            out += [ratios(on(p, CALIBRATE), constants) for p in parts if key(p) == name]
    return np.concatenate(out) if out else np.empty(0)


def learn(rows: Rows, constants: Floats) -> ResidualTrees | None:
    """What trees learn from the fit rows beyond the physics, where the calibrate rows say that it helps."""
    train, held = _few(on(rows, FIT), MAX_LEARNED), on(rows, CALIBRATE)
    if not held.time_s.size or train.slices().max() + 1 < MIN_SLICES:
        return None
    trees = learn_together([train], constants)
    off = [float(np.median(np.abs(held.time_s / predicted(held, constants, t) - 1))) for t in (None, trees)]
    return trees if off[1] < WORTH * off[0] else None


def learn_together(parts: Sequence[Rows], constants: Floats) -> ResidualTrees:
    """The same of several devices' rows; whether it helps is judged on a device that they are not of."""
    both = [p.learnable(constants) for p in parts]
    target = np.concatenate([np.log(p.time_s / s) for p, (s, _) in zip(parts, both, strict=True)])
    return residual.grown(np.concatenate([f for _, f in both]), kernel.FEATURES, target, SIZE)


def predicted(rows: Rows, constants: Floats, trees: ResidualTrees | None) -> Floats:
    """Seconds of every row, corrected where trees were kept."""
    physical_s, features = rows.learnable(constants)
    return physical_s if trees is None else np.maximum(physical_s * correction(features, trees), rows.roofs()[0])


def score(rows: Rows, predicted_s: Floats) -> Score:
    """Errors on the test rows beside the two baselines."""
    test, train = on(rows, TEST), on(rows, FIT)
    simple = baseline(train.roofs(), train.time_s)
    return Score(
        group=(rows.device, rows.format, rows.engine),
        rows=test.time_s.size,
        ours=predicted_s / test.time_s,
        roofline=np.maximum(*test.roofs()) / test.time_s,
        simple=simple(*test.roofs()) / test.time_s,
    )


def own(job: tuple[Rows, Choice]) -> tuple[dict[str, object], ResidualTrees | None, Score, Score]:
    """The entry of one device, its trees, and its errors without and with them."""
    rows, choice = job
    constants, _ = fit([on(rows, FIT)], choice)
    trees = learn(rows, constants)
    numbers = [int((rows.side == s).sum()) for s in (FIT, CALIBRATE, TEST)]
    at = "MoE tables, {}: {} rows fitted, {} for the interval, {} tested".format(rows.engine, *numbers)
    held, test = on(rows, CALIBRATE), on(rows, TEST)
    spread = quantiles(held.time_s / predicted(held, constants, trees))
    entry_ = entry([rows], ("device", rows.device), constants, spread, at)
    scores = (score(rows, predicted(test, constants, t)) for t in (None, trees))
    return entry_, trees, *scores


Fitted = tuple[Rows, Floats, ResidualTrees | None]


def kin_of(rows: Rows, fitted: Sequence[Fitted]) -> Fitted | None:
    """What answers where a device, format and back end has no constants of its own: the same kernel on the device or a
    relative, by another caller or in a format as wide; None without one that enough slices stand behind."""

    def is_kin(one: Rows) -> bool:
        return (
            one.generation == rows.generation
            and kernel_of(one.engine) == kernel_of(rows.engine)
            and (one.format, one.engine) != (rows.format, rows.engine)
            and slices_fitted(one) >= MIN_SLICES
            and (one.format == rows.format or is_as_wide(one.format, rows.format))
        )

    def far(one: Fitted) -> tuple[bool, bool, str]:
        return one[0].format != rows.format, one[0].device != rows.device, one[0].engine

    return min((f for f in fitted if is_kin(f[0])), key=far, default=None)


def slices_fitted(rows: Rows) -> int:
    """How many slices of experts the fit rows hold."""
    train = on(rows, FIT)
    return int(train.slices().max()) + 1 if train.time_s.size else 0


def is_left_to_kin(one: Fitted, fitted: Sequence[Fitted]) -> bool:
    """Whether constants of few slices serve the rows for the interval worse than those that would answer without."""
    rows, constants, trees = one
    if slices_fitted(rows) >= MIN_SLICES or (kin := kin_of(rows, fitted)) is None:
        return False
    held = on(rows, CALIBRATE)
    borrowed = predicted(held, kin[1], kin[2] if kin[0].format == rows.format else None)
    off = [float(np.median(np.abs(s / held.time_s - 1))) for s in (predicted(held, constants, trees), borrowed)]
    print(
        f"{rows.device} {rows.format} {rows.engine}: {slices_fitted(rows)} slices to fit, error {off[0]:.3f}; "
        f"{kin[0].format} {kin[0].engine}: {off[1]:.3f}",
        flush=True,
    )
    return off[1] < off[0]


def main() -> None:
    """Fit everything, print the errors, write the constants and the trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--only", help="fit this back end alone; keep the constants of the others")
    arguments = parser.parse_args()
    data, only = arguments.data, arguments.only
    whole: dict[Key, list[Rows]] = {}
    screened = 0
    for raw in read(data):
        if only and kernel_of(raw.engine) != only:
            continue
        rows, beaten = screen(raw)
        screened += beaten
        if min((rows.side == s).sum() for s in (FIT, CALIBRATE, TEST)) < MIN_FITTED:
            continue
        whole.setdefault((rows.format, rows.engine), []).append(rows)
    choices = {key: choose(parts) for key, parts in whole.items()}
    entries: list[dict[str, object]] = []
    forests: dict[str, ResidualTrees] = {}
    physical: list[Score] = []
    learned: list[Score] = []
    jobs = [(rows, choices[rows.format, rows.engine]) for parts in whole.values() for rows in parts]
    with Pool(WORKERS) as pool:
        made = list(pool.imap(own, jobs))
    fitted = [
        (rows, constants_vector(one["constants"]), trees)
        for (rows, _), (one, trees, _, _) in zip(jobs, made, strict=True)
    ]
    for (rows, _), (one, trees, bare, corrected), mine in zip(jobs, made, fitted, strict=True):
        if is_left_to_kin(mine, fitted):
            whole[rows.format, rows.engine].remove(rows)
            continue
        if trees:
            forests[f"{rows.device}|{rows.format}|{rows.engine}"] = trees
        entries.append(one)
        physical.append(bare)
        print(corrected.line(), flush=True)
        learned.append(corrected)
    whole = {key: parts for key, parts in whole.items() if parts}
    facts = root / "src/orrery/catalog/facts"
    entries += pooled(whole, choices, forests)
    if only:
        old = read_toml(facts / "calibrations/moe.toml")["calibration"]
        entries = [*(e for e in old if kernel_of(e["engine"]) != only), *entries]
        known = read_forests(facts / "residuals/moe.npz")
        forests = {k: v for k, v in known.items() if kernel_of(k.rpartition("|")[2]) != only} | forests
    residual.save(facts / "residuals/moe.npz", forests)
    write_calibrations(facts / "calibrations/moe.toml", "python tools/fit/moe.py", entries)
    print("physics alone")
    print_scores(physical)
    print("with what trees learned")
    print_scores(learned)
    print(f"{screened} rows beat a physical bound and were left out", flush=True)


Key = tuple[str, str]  # format, engine
WORKERS = 2
SIBLING_ROWS = 500  # of each device, for the trees of its generation


def siblings(kin: Sequence[Rows], choice: Choice) -> tuple[Floats, ResidualTrees | None]:
    """Measured/predicted of devices left out of their generation, and its trees where those bring that nearer to 1."""
    bare: list[Floats] = []
    learned: list[Floats] = []
    for left in kin:
        others = [_few(on(p, FIT), SIBLING_ROWS) for p in kin if p is not left]
        if not others:
            return np.empty(0), None
        constants, _ = fit(others, choice)
        trees = learn_together(others, constants)
        held = on(left, CALIBRATE)
        bare.append(ratios(held, constants))
        learned.append(held.time_s / predicted(held, constants, trees))
    off = [float(np.median(np.abs(np.concatenate(r) - 1))) for r in (bare, learned)]
    print(f"{kin[0].generation} {kin[0].format} {kin[0].engine}: a device left out, {off[0]:.3f}, trees {off[1]:.3f}")
    if off[1] >= off[0]:
        return np.concatenate(bare), None
    parts = [_few(on(p, FIT), SIBLING_ROWS) for p in kin]
    trees = learn_together(parts, fit(parts, choice)[0])
    return np.concatenate(learned), trees


def _few(rows: Rows, most: int) -> Rows:
    keep = np.random.default_rng(16).permutation(rows.time_s.size) < most
    return rows.take(keep)


def pooled(
    whole: dict[Key, list[Rows]], choices: dict[Key, Choice], forests: dict[str, ResidualTrees]
) -> list[dict[str, object]]:
    """Entries for generations and for everybody; trees for generations of which several devices were measured."""
    anybody = {key: left_out(parts, choices[key], lambda p: p.generation) for key, parts in whole.items()}
    widest = np.concatenate(list(anybody.values()))
    out: list[dict[str, object]] = []
    jobs = [(parts, choices[key], anybody[key], widest) for key, parts in whole.items()]
    with Pool(WORKERS) as pool:
        for entries, grown in pool.imap(generations, jobs):
            out += entries
            forests |= grown
    return out


Job = tuple[list[Rows], Choice, Floats, Floats]


def generations(job: Job) -> tuple[list[dict[str, object]], dict[str, ResidualTrees]]:
    """The entries of one format and back end for every generation and for anybody, and trees of generations."""
    parts, choice, anybody, widest = job
    far = anybody if anybody.size else widest
    format, engine = parts[0].format, parts[0].engine
    out: list[dict[str, object]] = []
    grown: dict[str, ResidualTrees] = {}
    for generation in sorted({p.generation for p in parts}):
        kin = [p for p in parts if p.generation == generation]
        near, trees = siblings(kin, choice)
        if trees:
            grown[f"generation={generation}|{format}|{engine}"] = trees
        names = ", ".join(p.device for p in kin)
        how = "one device left out" if near.size else "another generation's constants: one device measured"
        at = f"MoE tables, {engine}, {names}; interval: {how}"
        constants, _ = fit([_few(on(p, FIT), SIBLING_ROWS) for p in kin], choice)
        out.append(entry(kin, ("generation", generation), constants, quantiles(near if near.size else far), at))
    how = "one generation left out" if anybody.size else "that of the other formats: one generation measured"
    at = f"MoE tables, {engine}, {len(parts)} devices; interval: {how}"
    constants, _ = fit([on(p, FIT) for p in parts], choice)
    out.append(entry(parts, ("generation", ""), constants, quantiles(far), at))
    return out, grown


if __name__ == "__main__":
    main()
