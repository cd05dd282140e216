"""Published serving runs as deployments, workloads and what was measured; and how far off we are on each."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from orrery.base.errors import OrreryError
from orrery.evidence.serving_row import Row, read_row
from orrery.evidence.serving_rows import metric_of, static_bound_s
from orrery.evidence.split import sides
from orrery.evidence.tables import read_table
from orrery.execution.batch import Batch
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.execution.step import Step, step
from orrery.serving import clock
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

Errors = dict[tuple[str, str], np.ndarray]
"""log(measured / predicted) by mode and metric."""

METRICS = {"static": ("latency_s", "ttft_s", "tpot_s"), "offline": ("output_tokens_per_s",),
           "closed": ("tpot_s", "ttft_s"), "open": ("tpot_s", "ttft_s")}  # fmt: skip
"""What is fitted and scored in each mode: one number for each thing measured, not its arithmetic consequences."""


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
            both = [(p.time_s, p.once.compute_s > p.once.memory_s) for p in found.parts if p.once is not None]
            compute_s = np.sum([np.where(is_compute, time_s, 0.0) for time_s, is_compute in both], axis=0)
            known[key] = found, np.sum([time_s for time_s, _ in both], axis=0) - compute_s, compute_s
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
