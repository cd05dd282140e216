"""Fit what an engine's host costs, from measured serving runs, and the error that remains.

    python tools/fit/engines.py --data ../shared/data

Five constants for each engine, era (the [[version]] tables of its fact file; ``unknown`` for runs that do not say) and,
where there are runs enough, generation of devices: seconds a step, a sequence, a layer and a request, and how many
prompts arrive together in a closed loop. Rows are split by model and device count: 20 % fit the constants, 20 % give
the intervals, 60 % are only scored here. Rows that beat the datasheet's bound are left out by that bound.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import tomli_w
from scipy.optimize import minimize

from orrery.base.errors import OrreryError
from orrery.base.files import write_atomically
from orrery.catalog.calibrations import is_measured
from orrery.catalog.engines import FITTED, UNVERSIONED, era_of
from orrery.evidence.serving_row import Row, read_row
from orrery.evidence.serving_rows import metric_of, static_bound_s
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import read_table
from orrery.execution.batch import Batch
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.step import Step, step
from orrery.serving import clock
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

CONSTANTS = ("step_s", "per_sequence_s", "per_layer_s", "request_s", "prompts_ahead")
RATIOS = ("memory_ratio", "compute_ratio")
START = np.log([1e-3, 1e-5, 8e-6, 1e-2, 1.0, 1.0, 1.0])
LOW = np.log([1e-5, 1e-7, 1e-7, 1e-4, 0.05, 0.7, 0.7])
HIGH = np.log([5e-2, 2e-3, 2e-4, 5e-1, 8.0, 12.0, 12.0])
PRIOR_WEIGHT = 0.002
"""Pull of each constant towards its start, per unit of log distance squared: decides what the rows leave open."""

METRICS = {"static": ("latency_s", "ttft_s", "tpot_s"), "offline": ("output_tokens_per_s",),
           "closed": ("tpot_s", "ttft_s"), "open": ("tpot_s", "ttft_s")}  # fmt: skip
"""What is fitted and scored in each mode: one number for each thing measured, not its arithmetic consequences."""

MOST_PER_FILE = 60
"""Rows of one file that enter a fit, taken evenly; the pooled entry takes 25, so that no table outvotes the others."""

FIRST_TOKEN_WEIGHT = 0.3
"""Queues decide the first token's time and the constants here do not; so it counts less."""

MIN_FIT, MIN_FIT_GENERATION = 5, 15
"""Rows that a group needs before its constants are fitted apart from the wider group's."""

MIN_CALIBRATE = 20
"""Fewer rows than this do not make quantiles: the interval then comes from all engines together."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One row: what was run, what was measured, on which side it stands."""

    deployment: Deployment
    workload: Workload
    values: dict[str, float]
    side: str
    file: str


def read_rows(data: Path) -> list[Measured]:
    """Every serving row that can be answered and does not beat the datasheet."""
    rows: list[Measured] = []
    for path in sorted((data / "serving").glob("*.csv")):
        table = read_table(path)
        for number, side in enumerate(sides(table, "serving")):
            row = Row(cells={c: v[number] for c, v in table.columns.items()})
            try:
                deployment, workload = read_row(row)
            except OrreryError:
                continue
            values = {m: row.number(m) for m in METRICS[workload.mode] if row.word(m)}
            bound_s = static_bound_s(deployment, workload) if workload.mode == "static" else 0.0
            if values and values.get("latency_s", np.inf) >= bound_s:
                rows.append(Measured(deployment, workload, values, str(side), path.name))
    return rows


def remember_steps() -> None:
    """Cost each step's kernels once: the constants fitted here only add to them, so every later guess is cheap."""
    known: dict[tuple[object, ...], tuple[Step, np.ndarray, np.ndarray]] = {}

    def remembered(deployment: Deployment, batch: Batch) -> Step:
        sizes = (getattr(batch, f.name).tobytes() for f in fields(batch))
        key = (id(deployment.model), id(deployment.cluster), deployment.layout, deployment.formats,
               deployment.engine.kernels, *sizes)  # fmt: skip
        if key not in known:
            plain = replace(deployment.engine, per_layer_s=0.0, memory_ratio=1.0, compute_ratio=1.0)
            found = step(replace(deployment, engine=plain), batch)
            kernels = [p for p in found.parts if p.format]
            compute_s = np.sum([np.where(p.compute_s > p.memory_s, p.time_s, 0.0) for p in kernels], axis=0)
            known[key] = found, np.sum([p.time_s for p in kernels], axis=0) - compute_s, compute_s
        bare, memory_s, compute_s = known[key]
        more_s = deployment.engine.per_layer_s * deployment.model.num_layers * (batch.num_tokens > 0)
        more_s = more_s + (deployment.engine.memory_ratio - 1.0) * memory_s
        more_s = more_s + (deployment.engine.compute_ratio - 1.0) * compute_s
        return replace(bare, time_s=bare.time_s + more_s, stage_s=bare.stage_s + more_s / deployment.layout.pp)

    clock.step = remembered


def ratios(rows: Sequence[Measured], constants: dict[str, float] | None = None) -> dict[tuple[str, str], np.ndarray]:
    """log(measured / predicted) by (mode, metric)."""
    out: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        deployment = row.deployment
        if constants is not None:
            deployment = replace(deployment, engine=replace(deployment.engine, **constants))
        try:
            found = estimate(deployment, row.workload)
        except OrreryError:
            continue
        if isinstance(found, Infeasible):
            continue
        for metric, value in row.values.items():
            predicted, _ = metric_of(found, metric, deployment, row.workload)
            out[row.workload.mode, metric].append(np.log(value / predicted))
    return {key: np.array(values) for key, values in out.items()}


def loss(rows: Sequence[Measured], theta: np.ndarray) -> float:
    """Mean absolute log error, smooth near zero; first tokens count less."""
    total = weight = 0.0
    for (_, metric), errors in ratios(rows, _constants(theta)).items():
        w = FIRST_TOKEN_WEIGHT if metric == "ttft_s" else 1.0
        total += w * float(np.sum(np.sqrt(errors**2 + 0.01**2)))
        weight += w * errors.size
    outside = float(np.sum(np.maximum(theta - HIGH, 0) + np.maximum(LOW - theta, 0)))
    return total / max(weight, 1.0) + PRIOR_WEIGHT * float(np.sum((theta - START) ** 2)) + outside


def fit(rows: Sequence[Measured], has_ratio: bool) -> dict[str, float]:
    """The constants that explain the fit rows best; an engine's kernels measured on the generation keep their time."""
    free = len(START) if has_ratio else len(CONSTANTS)

    def objective(theta: np.ndarray) -> float:
        return loss(rows, np.append(theta, START[free:]))

    simplex = np.vstack([START[:free], START[:free] + np.eye(free)])
    limits = {"xatol": 0.03, "fatol": 1e-4, "maxfev": 30 * free, "initial_simplex": simplex}
    found = minimize(objective, START[:free], method="Nelder-Mead", options=limits)
    return _constants(np.append(found.x, START[free:]))


def _constants(theta: np.ndarray) -> dict[str, float]:
    values = np.exp(np.clip(theta, LOW, HIGH)).tolist()
    return {k: float(f"{v:.4g}") for k, v in zip((*CONSTANTS, *RATIOS), values, strict=True)}


def spread(errors: np.ndarray) -> dict[str, float]:
    """Quantiles of measured / predicted."""
    q = np.exp(np.quantile(errors, [0.1, 0.9, 0.025, 0.975]))
    return dict(zip(("low_80", "high_80", "low_95", "high_95"), (float(f"{x:.4g}") for x in q), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=FITTED)
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    arguments = parser.parse_args()
    remember_steps()
    rows = read_rows(arguments.data)
    pooled = ratios([r for r in rows if r.side == CALIBRATE])
    entries = [_entry(("", "", ""), rows, pooled)]
    entries += [_entry(key, members, pooled) for key, members in sorted(grouped(rows).items())]
    content = tomli_w.dumps({"sources": SOURCES, "engine": entries})
    if not arguments.dry:
        write_atomically(arguments.out, f"# made by: python tools/fit/engines.py\n{content}")


def grouped(rows: Sequence[Measured]) -> dict[tuple[str, str, str], list[Measured]]:
    """Rows by engine and era, and again by generation; only groups with rows enough to fit.

    An engine's own entry rests on generations whose kernels were measured, if it ran on any.
    """
    groups: dict[tuple[str, str, str], list[Measured]] = defaultdict(list)
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


SOURCES = {"runs": {"title": "Published serving runs, tables of docs/scorecard.md", "retrieved": "2026-11"}}


def _count(rows: Sequence[Measured], side: str) -> int:
    return sum(r.side == side for r in rows)


def _entry(
    key: tuple[str, str, str], rows: list[Measured], pooled: dict[tuple[str, str], np.ndarray]
) -> dict[str, object]:
    """Fit one group, print its errors on unseen rows, and make its entry."""
    name, era, generation = key
    chosen = _thin([r for r in rows if r.side == FIT], MOST_PER_FILE if name else 25)
    constants = fit(chosen, has_ratio=bool(name) and not _has_own_kernels(rows, generation))
    calibrate = ratios([r for r in rows if r.side == CALIBRATE], constants)
    print(f"\n{name or 'any'} {era} {generation}: {constants}  fit {len(chosen)} rows")
    for side in (FIT, TEST):
        _print_errors(side, ratios([r for r in rows if r.side == side], constants))
    spreads = {}
    for found in sorted(set(calibrate) | (set(pooled) if not name else set())):
        errors = calibrate.get(found, np.empty(0))
        spreads[".".join(found)] = spread(errors if errors.size >= MIN_CALIBRATE else pooled[found])
    at = f"{len(chosen)} rows fitted, {_count(rows, CALIBRATE)} for the intervals, {_count(rows, TEST)} tested"
    return {
        "name": name, "version": era or UNVERSIONED, "generation": generation, "source": "runs", "at": at,
        "constants": constants, "spread": spreads,
    }  # fmt: skip


def _has_own_kernels(rows: Sequence[Measured], generation: str) -> bool:
    """Whether this engine's kernels were measured, and on this generation if there is only one."""
    engine = rows[0].deployment.engine
    return engine.kernels == engine.name and (not generation or is_measured(generation))


def _print_errors(side: str, found: dict[tuple[str, str], np.ndarray]) -> None:
    for key, errors in sorted(found.items()):
        off = np.abs(np.expm1(-errors)) * 100
        print(f"  {side:5} {'/'.join(key):30} {errors.size:5}  median {np.median(off):5.1f}  mean {off.mean():6.1f}  "
              f"p90 {np.quantile(off, 0.9):6.1f}  bias {np.median(np.expm1(-errors)) * 100:+6.1f}")  # fmt: skip


def _thin(rows: list[Measured], most: int) -> list[Measured]:
    by_file: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        by_file[row.file].append(row)
    return [m for members in by_file.values() for m in members[:: max(1, len(members) // most)]]


if __name__ == "__main__":
    main()
