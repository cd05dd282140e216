"""Fit the GEMM rule to the measured tables and write ``facts/calibrations/gemm.toml``.

    python tools/fit/gemm.py --data ../shared/data

Constants come from rows on the fit side, intervals from the calibrate side, the printed errors from the test side.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from gemm_fit import Problem, fit, predicted, solve
from gemm_learn import corrected, train_all
from gemm_rows import CALIBRATE, FIT, TEST, Key, Rows, read_rows
from intervals import LONE_WIDENING, spread_of
from residual import save

from orrery.base.files import write_atomically
from orrery.base.sources import read_toml
from orrery.catalog.calibrations import FOLDER
from orrery.catalog.residuals import FOLDER as RESIDUALS
from orrery.catalog.residuals import read_forests
from orrery.hardware.calibration import ResidualTrees

LAUNCH_ENGINE = "tensorrt-llm"  # whose bf16 rows tell what a bare launch costs
SOURCES = {
    "aiconfigurator": {
        "title": "AIConfigurator performance database, commit 095f58a51c4c",
        "url": "https://github.com/ai-dynamo/aiconfigurator",
        "retrieved": "2026-11",
    },
    "aiter": {
        "title": "AITER, AMD's library of tuned kernels: tuned shapes, commit e404860",
        "url": "https://github.com/ROCm/aiter",
        "retrieved": "2026-11",
    },
    "neusight": {
        "title": "NeuSight, measured products of PyTorch in FP32, commit 6945927d9afc",
        "url": "https://github.com/sitar-lab/NeuSight",
        "retrieved": "2026-11",
    },
}
SOURCE_OF = {"aiter": "aiter", "pytorch": "neusight"}
THIN_ROWS = 60
"""With fewer rows to fit, a group takes what all devices told of its kernels."""
HOST_TOLD = ("host_s", "peak_frac", "feed_ratio")
"""What rows tell whose small products are hidden behind the host's launches; the rest is told by the same product on
the same device in another engine."""
POOL_ROWS = 250  # rows a device brings into a pooled fit, so that every device weighs the same


def told_by_bf16(key: Key, rows: Rows, known: Mapping[Key, Mapping[str, float]]) -> dict[str, float]:
    """What the device's bf16 rows tell about its other kernels: how much its cache holds, and the bare launch."""
    base = next((known[k] for e in (key[2], LAUNCH_ENGINE) if (k := (key[0], "bf16", e)) in known), {})
    names = ("cache_ratio", "overhead_s") if rows.quantises else ("cache_ratio",)
    return {name: base[name] for name in names if base}


def fit_devices(groups: Mapping[Key, Rows], description: Mapping[Key, dict[str, float]]) -> dict[Key, dict[str, float]]:
    """Constants of every measured group; bf16 first, because it tells the launch, and what others tell last.

    ``told``: constants of groups that are not fitted again.
    """
    known = dict(description)
    thin = [key for key, rows in groups.items() if len(rows.on(FIT).m) < THIN_ROWS]
    order = sorted(groups, key=lambda k: (groups[k].is_timed_on_host, k[1] != "bf16", k[2] != LAUNCH_ENGINE, k))
    for key in order:
        if key in thin:
            continue
        rows = groups[key].on(FIT)
        if groups[key].is_timed_on_host:
            known[key] = fit_behind_host(key, groups[key], known)
        else:
            known[key] = fit([rows], known=told_by_bf16(key, rows, known))
        errors = np.abs(predicted(rows, known[key]) / rows.time_s - 1)
        print(f"{' '.join(key):45s} fit {np.median(errors):6.1%} {errors.mean():6.1%}", flush=True)
    for kind in sorted({key[1:] for key in thin}):
        alike = [key for key in thin if key[1:] == kind]
        known |= dict.fromkeys(alike, fit([groups[key].on(FIT) for key in alike]))
    return known


def fit_behind_host(key: Key, rows: Rows, known: Mapping[Key, Mapping[str, float]]) -> dict[str, float]:
    """Constants of rows that a host launched one by one."""
    description = next(known[k] for e in ("sglang", LAUNCH_ENGINE) if (k := (key[0], key[1], e)) in known)
    fixed = {name: value for name, value in description.items() if name not in HOST_TOLD}
    part = rows.on(FIT)
    problem = Problem([part], HOST_TOLD, fixed)
    start = {**description, "host_s": float(np.quantile(part.time_s, 0.25))}
    return solve(problem, problem.position(start))[1]


def fit_pool(
    groups: Mapping[Key, Rows], keys: Iterable[Key], known: Mapping[Key, dict[str, float]]
) -> dict[str, float]:
    """One set of constants for several groups; choices as one of the members made them."""
    keys = list(keys)
    if len(keys) == 1:
        return known[keys[0]]
    description = [told_by_bf16(key, groups[key], known) for key in keys]
    shared = {
        name: float(np.exp(np.mean(np.log([t[name] for t in description]))))
        for name in description[0]
        if all(description)
    }
    if all("host_s" in known[key] for key in keys):
        return {
            n: float(np.exp(np.mean(np.log([known[k][n] for k in keys])))) if n not in CHOICES else v
            for n, v in known[keys[0]].items()
            if all(n in known[k] for k in keys)
        }
    parts = [groups[key].on(FIT) for key in keys]
    return fit([thinned(part) for part in parts], known=shared, like=[known[key] for key in keys])


CHOICES = ("tile_set", "max_splits", "min_rows", "gemv_rows")


def thinned(rows: Rows) -> Rows:
    """At most ``POOL_ROWS`` of them, evenly."""
    if len(rows.m) <= POOL_ROWS:
        return rows
    return rows.take(np.linspace(0, len(rows.m) - 1, POOL_ROWS).astype(np.int64))


def range_of(parts: Iterable[Rows]) -> dict[str, list[int]]:
    """Smallest and largest size behind some constants."""
    parts = list(parts)
    return {
        size: [int(min(getattr(p, size).min() for p in parts)), int(max(getattr(p, size).max() for p in parts))]
        for size in "mnk"
    }


def entry(
    owner: Mapping[str, str],
    key: Key,
    constants: Mapping[str, float],
    spread: Mapping[str, float],
    parts: list[Rows],
    at: str,
) -> dict[str, object]:
    """One [[calibration]] table."""
    return {
        **owner,
        "op": "gemm",
        "format": key[1],
        "engine": key[2],
        "from": SOURCE_OF.get(key[2], "aiconfigurator"),
        "at": at,
        "constants": {k: float(f"{v:.4g}") for k, v in constants.items()},
        "spread": dict(spread),
        "range": range_of(parts),
    }


def counts(rows: Rows) -> str:
    """How many rows did what."""
    fitted, calibrated, tested = (int((rows.side == side).sum()) for side in (FIT, CALIBRATE, TEST))
    return f"{fitted} rows fitted, {calibrated} for the interval, {tested} tested"


def device_entries(
    groups: Mapping[Key, Rows], known: Mapping[Key, dict[str, float]], forests: Mapping[Key, ResidualTrees]
) -> list[dict[str, object]]:
    """What was measured on the very device."""
    found: list[dict[str, object]] = []
    for key, rows in groups.items():
        held = rows.on(CALIBRATE) if (rows.side == CALIBRATE).any() else rows
        spread = spread_of(held.time_s / corrected(held, known[key], forests.get(key)))
        at = f"gemm table, {key[2]}: {counts(rows)}"
        found.append(entry({"device": key[0]}, key, known[key], spread, [rows], at))
    return found


def pooled_entries(groups: Mapping[Key, Rows], known: Mapping[Key, dict[str, float]]) -> list[dict[str, object]]:
    """By generation, and for anybody; intervals from devices (or generations) left out of the pool."""
    found: list[dict[str, object]] = []
    for owner, pools in (("generation", by_generation(groups)), ("", by_format(groups))):
        for (generation, format, engine), clans in sorted(pools.items()):
            keys = [key for clan in clans.values() for key in clan]
            constants = fit_pool(groups, keys, known)
            ratios = [
                groups[key].on(CALIBRATE).time_s / predicted(groups[key].on(CALIBRATE), without)
                for name, clan in clans.items()
                if len(clans) > 1
                for without in [fit_pool(groups, [k for k in keys if k not in clan], known)]
                for key in clan
            ]
            if ratios:
                spread, how = spread_of(np.concatenate(ratios)), "interval from each left out in turn"
            else:
                rows = groups[keys[0]].on(CALIBRATE)
                spread = spread_of((rows.time_s / predicted(rows, constants)) ** LONE_WIDENING)
                how = f"one device, interval widened {LONE_WIDENING}-fold (log)"
            devices = ", ".join(sorted({k[0] for k in keys}))
            parts = [groups[key] for key in keys]
            at = f"gemm table, {engine}: pooled over {devices}; {how}"
            found.append(entry({"generation": generation}, ("", format, engine), constants, spread, parts, at))
            print(f"pooled {owner} {generation} {format} {engine}: {spread}", flush=True)
    return found


def by_generation(groups: Mapping[Key, Rows]) -> dict[Key, dict[str, list[Key]]]:
    """(generation, format, engine) -> device -> its group."""
    pools: dict[Key, dict[str, list[Key]]] = {}
    for key, rows in groups.items():
        pools.setdefault((rows.device.generation, key[1], key[2]), {})[key[0]] = [key]
    return pools


def by_format(groups: Mapping[Key, Rows]) -> dict[Key, dict[str, list[Key]]]:
    """("", format, engine) -> generation -> its groups."""
    pools: dict[Key, dict[str, list[Key]]] = {}
    for key, rows in groups.items():
        pools.setdefault(("", key[1], key[2]), {}).setdefault(rows.device.generation, []).append(key)
    return pools


def report(
    groups: Mapping[Key, Rows], known: Mapping[Key, dict[str, float]], forests: Mapping[Key, ResidualTrees]
) -> None:
    """Errors on rows that nothing above has seen: the rule alone, and with what the trees learned."""
    pooled: list[list[np.ndarray]] = [[], []]
    print(f"{'test rows: median, mean, 90th percentile':45s} {'rule alone':22s} with trees")
    for key, rows in groups.items():
        test = rows.on(TEST)
        errors = [np.abs(corrected(test, known[key], trees) / test.time_s - 1) for trees in (None, forests.get(key))]
        if not groups[key].is_timed_on_host:
            for retained, found in zip(pooled, errors, strict=True):
                retained.append(found)
        print(f"{' '.join(key):45s} {figures(errors[0])}  {figures(errors[1])}")
    print(f"{'gemm table':45s} {'  '.join(figures(np.concatenate(p)) for p in pooled)}")


def own_constants(entries: Iterable[Mapping[str, Any]]) -> dict[Key, dict[str, float]]:
    """The constants of measured groups among stored entries."""
    return {(e["device"], e["format"], e["engine"]): dict(e["constants"]) for e in entries if "device" in e}


def name_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What an entry is of."""
    return tuple(str(entry.get(word)) for word in ("device", "generation", "format", "engine"))


def figures(errors: np.ndarray) -> str:
    """Median, mean and 90th percentile."""
    return f"{np.median(errors):6.1%} {errors.mean():6.1%} {np.quantile(errors, 0.9):6.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trees-only", action="store_true", help="keep the constants; train the trees again")
    parser.add_argument("--only", metavar="WORD", help="a device, format or engine: keep everything else as it stands")
    arguments = parser.parse_args()
    groups, num_screened = read_rows(arguments.data)
    print(f"{sum(len(r.m) for r in groups.values())} rows; {num_screened} beat a physical bound and were left out")
    path, only = RESIDUALS / "gemm.npz", arguments.only
    stored = read_toml(FOLDER / "gemm.toml")["calibration"] if arguments.trees_only or only else []
    groups = {key: rows for key, rows in groups.items() if not only or only in key}
    standing = own_constants(stored)
    known = standing if arguments.trees_only else fit_devices(groups, standing)
    forests = train_all(groups, known)
    retained = {key: trees for key, trees in read_forests(path).items() if only and only not in key.split("|")}
    save(path, retained | {"|".join(key): trees for key, trees in forests.items()})
    pooled = [e for e in stored if "generation" in e] if arguments.trees_only else pooled_entries(groups, known)
    entries = device_entries(groups, known, forests) + pooled
    named = {name_of(e) for e in entries}
    entries = [e for e in stored if name_of(e) not in named] + entries
    text = tomli_w.dumps({"sources": SOURCES, "calibration": entries})
    write_atomically(FOLDER / "gemm.toml", f"# made by: python tools/fit/gemm.py\n{text}")
    report(groups, known, forests)


if __name__ == "__main__":
    main()
