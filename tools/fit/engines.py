"""Fit what an engine's host costs, from measured serving runs, and the error that remains.

    python tools/fit/engines.py --data ../shared/data

Five constants for each engine, era (the [[version]] tables of its fact file; ``unknown`` for runs that do not say) and,
where there are runs enough, generation of devices: seconds a step, a sequence, a layer and a request, and how many
prompts arrive together in a closed loop. Rows are split by model and device count: 20 % fit the constants, 20 % give
the intervals, 60 % are only scored here. Rows that beat the datasheet's bound are left out by that bound.
"""

import argparse
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tomli_w
from engine_rows import Errors, Measured, closed_form_errors, ratios, read_rows, remember_steps, remember_surfaces
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.catalog.calibrations import is_measured
from orrery.catalog.engines import FITTED, era_of
from orrery.catalog.releases import UNVERSIONED
from orrery.evidence.split import CALIBRATE, FIT, TEST

Key = tuple[str, str, str]
"""Engine, era, generation; empty words pool over all."""

CONSTANTS = ("step_s", "per_sequence_s", "per_layer_s", "request_s")
RATIOS = ("memory_ratio", "compute_ratio")
START = np.log([1e-3, 1e-5, 8e-6, 1e-2, 1.0, 1.0])
LOW = np.log([1e-5, 1e-7, 1e-7, 1e-4, 0.7, 0.7])
HIGH = np.log([5e-2, 2e-3, 2e-4, 5e-1, 12.0, 12.0])
STARTS = (START, START + np.log([1.0, 3.0, 1.0, 1.0, 3.0, 3.0]))
"""Where a search begins; one that may scale kernels also begins where they take three times as long."""

AHEAD = np.geomspace(0.25, 8.0, 21)
"""Prompts that come back together, as the closed forms take them: tried one after the other, once the rest is known."""

STEP, FAR = 0.1, 10.0
"""Step of a search's slopes (of a logarithm): far enough that a run's discrete steps do not hide them; and an offset
that makes it the same everywhere, because the search takes steps in proportion."""

PRIOR_WEIGHT = 0.002
"""Pull of each constant towards its start, per unit of log distance squared: decides what the rows leave open."""

MOST_PER_FILE = 24
"""Rows of one file that enter a fit, taken evenly; the pooled entry takes 10, so that no table outvotes the others."""

FIRST_TOKEN_WEIGHT = 0.5
"""Queues decide most of the first token's time and the constants here little of it; so it counts less."""

MIN_FIT, MIN_FIT_GENERATION = 5, 15
"""Rows that a group needs before its constants are fitted apart from the wider group's."""

TYPICAL = 0.2
"""Log error beyond which a row says more about its run than about the constants."""

MIN_FIT_DENSE = 10
"""With this many rows of dense models a group is fitted on them alone: what is not known of experts (how traffic
spreads over them) would otherwise pass for the host's work."""

WIDER = 1.3
"""Intervals from rows that also fitted the constants, or from other engines, are this much wider (log space)."""

MIN_CALIBRATE = 20
"""Fewer rows than this do not make quantiles: the interval then comes from all engines together."""


def residuals(rows: Sequence[Measured], theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log errors of every measured value, and how much each counts: tables of many rows less for each row."""
    errors: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for file in sorted({r.file for r in rows}):
        members = [r for r in rows if r.file == file]
        for (_, metric), found in sorted(ratios(members, _constants(theta)).items()):
            errors.append(found)
            each = (FIRST_TOKEN_WEIGHT if metric == "ttft_s" else 1.0) / np.sqrt(len(members))
            weights.append(np.full(found.size, each))
    return np.concatenate(errors), np.concatenate(weights)


def fit(rows: Sequence[Measured], has_ratio: bool) -> dict[str, float]:
    """The constants that explain the fit rows best; an engine's kernels measured on the generation keep their time.

    Least is TYPICAL x the mean of log(1 + (error / TYPICAL)^2), so that runs that went wrong hardly count and first
    tokens count less, and the pull of PRIOR_WEIGHT towards the start.
    """
    free = len(START) if has_ratio else len(CONSTANTS)
    _, weights = residuals(rows, START)
    pull = np.full(free, PRIOR_WEIGHT * weights.sum() * TYPICAL)

    def error(place: np.ndarray) -> np.ndarray:
        theta = place - FAR + START[:free]
        return np.append(residuals(rows, np.append(theta, START[free:]))[0], theta - START[:free])

    def cost(squares: np.ndarray) -> np.ndarray:
        """Value, slope and curvature of each residual's cost: a logarithm for errors, a square for the pull."""
        z = squares[: weights.size] / TYPICAL**2
        log = TYPICAL**2 * np.log1p(z), 1 / (1 + z), -1 / (TYPICAL * (1 + z)) ** 2
        pulls = pull * squares[weights.size :], pull, np.zeros(free)
        return np.stack([np.append(weights * x, p) for x, p in zip(log, pulls, strict=True)])

    found = min(
        (least_squares(error, (first - START)[:free] + FAR, loss=cost, diff_step=STEP / FAR, max_nfev=12,
                       bounds=((LOW - START)[:free] + FAR, (HIGH - START)[:free] + FAR), xtol=1e-3, ftol=1e-3)
         for first in (STARTS if has_ratio else STARTS[:1])),
        key=lambda f: f.cost,
    )  # fmt: skip
    return _constants(np.append(found.x - FAR + START[:free], START[free:]))


def prompts_ahead(rows: Sequence[Measured], constants: dict[str, float]) -> float:
    """What makes the closed forms' first tokens of closed loops fit best; 1 where there are none."""
    loops = [r for r in rows if r.workload.mode == "closed" and "ttft_s" in r.values and len(r.service.pools) == 1]
    if not loops:
        return 1.0
    errors = [closed_form_errors(loops, constants | {"prompts_ahead": float(x)}) for x in AHEAD]
    return float(f"{AHEAD[int(np.argmin([np.log1p((e / TYPICAL) ** 2).mean() for e in errors]))]:.4g}")


def _constants(theta: np.ndarray) -> dict[str, float]:
    values = np.exp(np.clip(theta, LOW, HIGH)).tolist()
    return {k: float(f"{v:.4g}") for k, v in zip((*CONSTANTS, *RATIOS), values, strict=True)}


def spread(errors: np.ndarray, factor: float = 1.0) -> dict[str, float]:
    """Quantiles of measured / predicted, ``factor`` times as far from 1 in logarithms; 1 itself is always inside."""
    q = np.exp(factor * np.quantile(errors, [0.1, 0.9, 0.025, 0.975]))
    least = np.array([0.97, 1.03, 0.95, 1.05])
    q = np.where(least < 1, np.minimum(q, least), np.maximum(q, least))
    return dict(zip(("low_80", "high_80", "low_95", "high_95"), (float(f"{x:.4g}") for x in q), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=FITTED)
    parser.add_argument("--only", default=None, help="refit this engine alone; keep the constants of the others")
    parser.add_argument("--traffic", action="store_true", help="refit groups that hold runs with traffic alone")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    arguments = parser.parse_args()
    remember_steps()
    remember_surfaces()
    rows = read_rows(arguments.data)
    groups = {("", "", ""): rows, **dict(sorted(grouped(rows).items()))}
    known = known_constants(arguments.out) if arguments.only is not None or arguments.traffic else {}
    asked = {
        key for key, members in groups.items()
        if key[0] == arguments.only or (arguments.traffic and key[0] and _has_traffic(members))
    }  # fmt: skip
    constants = {
        key: fit_group(key, members) if key not in known or key in asked else known[key]
        for key, members in groups.items()
    }
    errors = {key: errors_of(members, constants[key]) for key, members in groups.items()}
    entries = [entry(key, groups[key], constants[key], errors) for key in groups]
    if not arguments.dry:
        content = tomli_w.dumps({"sources": SOURCES, "engine": entries})
        write_atomically(arguments.out, f"# made by: python tools/fit/engines.py\n{content}")


def known_constants(path: Path) -> dict[Key, dict[str, float]]:
    """What an earlier fit found, by engine, era and generation."""
    stored = tomllib.loads(path.read_text())["engine"]
    return {(e["name"], e["version"] if e["name"] else "", e["generation"]): e["constants"] for e in stored}


def grouped(rows: Sequence[Measured]) -> dict[Key, list[Measured]]:
    """Rows by engine and era, and again by generation; only groups with rows enough to fit.

    An engine's own entry rests on generations whose kernels were measured, if it ran on any.
    """
    groups: dict[Key, list[Measured]] = defaultdict(list)
    for row in rows:
        engine, generation = row.deployment.engine, row.deployment.cluster.device.generation
        era = era_of(engine.name, engine.version)
        groups[engine.name, era, generation].append(row)
        groups[engine.name, era, ""].append(row)
    for key, members in groups.items():
        measured = [r for r in members if is_measured(r.deployment.cluster.device.generation)]
        if not key[2] and _count(measured, FIT) >= MIN_FIT:
            groups[key] = measured
    return {
        key: members for key, members in groups.items()
        if _count(members, FIT) >= (MIN_FIT_GENERATION if key[2] else MIN_FIT)
        and (not key[2] or len(members) < len(groups[key[0], key[1], ""]) or not is_measured(key[2]))
    }  # fmt: skip


def _has_traffic(rows: Sequence[Measured]) -> bool:
    return any(r.workload.mode != "static" for r in rows)


SOURCES = {"runs": {"title": "Published serving runs, tables of docs/scorecard.md", "retrieved": "2026-11"}}


def _count(rows: Sequence[Measured], side: str) -> int:
    return sum(r.side == side for r in rows)


def fit_group(key: Key, rows: list[Measured]) -> dict[str, float]:
    """The constants of one group, from its fit rows."""
    name, era, generation = key
    mine = [r for r in rows if r.side == FIT]
    dense = [r for r in mine if not any(b.experts for b in r.deployment.model.blocks)]
    chosen = _thin(dense if len(dense) >= MIN_FIT_DENSE else mine, MOST_PER_FILE if name else 10)
    found = fit(chosen, has_ratio=bool(name) and not _has_own_kernels(rows, generation))
    found["prompts_ahead"] = prompts_ahead(chosen, found)
    print(f"{name or 'any'} {era} {generation}: {found}  from {len(chosen)} rows", flush=True)
    return found


def errors_of(rows: Sequence[Measured], constants: dict[str, float]) -> dict[str, Errors]:
    """log(measured / predicted) by side, mode and metric."""
    return {side: ratios([r for r in rows if r.side == side], constants) for side in (FIT, CALIBRATE, TEST)}


def entry(
    key: Key, rows: Sequence[Measured], constants: dict[str, float], errors: dict[Key, dict[str, Errors]]
) -> dict[str, object]:
    """One group for the file, its errors on unseen rows printed."""
    name, era, generation = key
    print(f"\n{name or 'any'} {era} {generation}")
    _print_errors(errors[key][TEST])
    everything = [e for k, e in errors.items() if k[0]]
    asked = {m for e in (everything if not name else [errors[key]]) for side in e.values() for m in side}
    at = f"{_count(rows, FIT)} rows to fit, {_count(rows, CALIBRATE)} for the intervals, {_count(rows, TEST)} tested"
    return {
        "name": name, "version": era or UNVERSIONED, "generation": generation, "source": "runs", "at": at,
        "constants": constants,
        "spread": {".".join(m): _spread_of(m, errors[key] if name else {}, everything) for m in sorted(asked)},
    }  # fmt: skip


def _spread_of(
    metric: tuple[str, str], own: dict[str, Errors], everything: list[dict[str, Errors]]
) -> dict[str, float]:
    """From the group's calibrate rows; where too few, its fit rows too; where still too few, all engines' rows."""
    none = np.empty(0)
    calibrate = own.get(CALIBRATE, {}).get(metric, none)
    if calibrate.size >= MIN_CALIBRATE:
        return spread(calibrate)
    both = np.concatenate([calibrate, own.get(FIT, {}).get(metric, none)])
    if both.size >= MIN_CALIBRATE:
        return spread(both, WIDER)
    return spread(np.concatenate([e[s].get(metric, none) for e in everything for s in (FIT, CALIBRATE)]), WIDER)


def _print_errors(found: Errors) -> None:
    for key, errors in sorted(found.items()):
        off = np.abs(np.expm1(-errors)) * 100
        print(f"  {'/'.join(key):30} {errors.size:5}  median {np.median(off):5.1f}  mean {off.mean():6.1f}  "
              f"p90 {np.quantile(off, 0.9):6.1f}  bias {np.median(np.expm1(-errors)) * 100:+6.1f}")  # fmt: skip


def _has_own_kernels(rows: Sequence[Measured], generation: str) -> bool:
    """Whether this engine's kernels were measured, and on this generation if there is only one."""
    engine = rows[0].deployment.engine
    return engine.kernels == engine.name and (not generation or is_measured(generation))


def _thin(rows: list[Measured], most: int) -> list[Measured]:
    by_file: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        by_file[row.file].append(row)
    return [m for members in by_file.values() for m in members[:: max(1, len(members) // most)]]


if __name__ == "__main__":
    main()
