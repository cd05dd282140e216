"""Rows of measured tables as runs, and their measurements as cells; what cannot be compared is said."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from orrery.base.errors import OrreryError, UnknownName
from orrery.calibrate.compare.cells import KINDS, LOCKSTEP_RATIO, NOISE_RATIO, Cell, bounded, kind_of
from orrery.calibrate.compare.run import Run, ServingRun, TrainingRun, predict
from orrery.calibrate.runs.read import RUN
from orrery.evidence.answers import Answers
from orrery.evidence.columns import check_columns, kinds_of
from orrery.evidence.metrics import METRICS, base_metric
from orrery.evidence.row import Row
from orrery.evidence.serving_pools import read_service
from orrery.evidence.tables import Table
from orrery.evidence.training_rows import read as read_training
from orrery.execution.memory import Infeasible
from orrery.serving.workload import Workload

COMPARED = ("serving", "training")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Contents of measured tables: runs, their numbers, and why some rows are left out."""

    runs: tuple[Run, ...]
    cells: tuple[Cell, ...]
    declined: Counter[str]
    assumed: Counter[str]


def read_measured(tables: Sequence[Table]) -> Measured:
    """Every row that can be predicted, with what it measured."""
    runs: list[Run] = []
    cells: list[Cell] = []
    declined, assumed = Counter[str](), Counter[str]()
    for table in tables:
        kinds = kinds_of(table)
        check_columns(table, kinds)
        for number, kind in enumerate(kinds.tolist()):
            try:
                run, row = _run_of(table, number, kind, f"run {len(runs) + 1}")
                found = _cells_of(run, row, kind, len(runs))
            except UnknownName as error:
                declined[f"unknown {error.kind} {error.name}"] += 1
            except OrreryError as error:
                declined[str(error)] += 1
            else:
                runs.append(run)
                cells += found
                assumed.update(row.assumed)
    return Measured(runs=tuple(runs), cells=tuple(cells), declined=declined, assumed=assumed)


def _run_of(table: Table, number: int, kind: str, name: str) -> tuple[Run, Row]:
    """One row as a run. Raises an OrreryError whose text is the reason to leave it out."""
    source = table.columns.get(RUN, [""] * len(table))[number] or f"{table.name}, row {number + 2}"
    if kind == "serving":
        row = Row({c: v[number] for c, v in table.columns.items()})
        service, workload = read_service(row)
        return ServingRun(
            name=f"{name} ({_traffic(workload)})", source=source, service=service, workload=workload, requested=workload
        ), row
    if kind == "training":
        answers = Answers(len(table))
        if not (found := read_training(table, np.array([number]), answers)):
            raise OrreryError(answers.declined[number])
        one = found[0]
        return TrainingRun(
            name=f"{name} ({one.layout})", source=source, row=one, job=one.job, layout=one.layout
        ), one.row
    raise OrreryError(f"kind {kind}: only {' and '.join(COMPARED)} runs are compared")


def _traffic(workload: Workload) -> str:
    """The load and the lengths in a few words."""
    load = {
        "static": f"batch {workload.batch_size}",
        "closed": f"{workload.concurrency} in flight",
        "open": f"{workload.request_rate_per_s:.3g} a second",
        "offline": "all at once",
    }[workload.mode]
    return f"{load}, {workload.input_tokens:.0f}+{workload.output_tokens:.0f}"


def _cells_of(run: Run, row: Row, kind: str, number: int) -> list[Cell]:
    """Measured metrics of a run, each beside its prediction."""
    stated = _stated(row, kind)
    if not stated:
        raise OrreryError("no measurement of speed, power or cache")
    found = predict(run, stated)
    if isinstance(found, Infeasible):
        raise OrreryError("predicted not to fit in memory")
    cells = [
        Cell(
            run=number,
            system=_system(run),
            metric=m,
            kind=kind_of(base_metric(m)),
            measured=measured,
            predicted=found[m].value,
            deviation_ratio=bounded(found[m].deviation_ratio),
            noise_ratio=_noise_ratio(run, m),
        )
        for m, measured in stated.items()
        if m in found and isfinite(found[m].value) and found[m].value > 0
    ]
    if not cells:
        raise OrreryError("no measurement that is predicted")
    return cells


def _noise_ratio(run: Run, metric: str) -> float:
    """First tokens of clients that wait for each other are a matter of chance."""
    is_loop = isinstance(run, ServingRun) and run.workload.mode == "closed" and run.workload.concurrency > 1
    return LOCKSTEP_RATIO if is_loop and base_metric(metric) == "ttft_s" else NOISE_RATIO


def _stated(row: Row, kind: str) -> dict[str, float]:
    """One metric of each kind: a mean where there is one, else a median, else the lowest percentile."""
    out: dict[str, float] = {}
    present = [c for c in row.cells if base_metric(c) in METRICS[kind] and row.word(c)]
    for members in KINDS.values():
        named = sorted(
            (c for c in present if base_metric(c) in members),
            key=lambda c: (c != base_metric(c), not c.endswith("_p50"), members.index(base_metric(c)), c),
        )
        for column in named[:1]:
            out[column] = row.needed(column)
    return out


def _system(run: Run) -> str:
    """Key of runs that share the prediction's error: model, device, engine or framework, and layout."""
    if isinstance(run, TrainingRun):
        return f"{run.job.model.name}|{run.job.cluster.device.name}|{run.job.framework.name}"
    d = run.service.pools[-1].deployment
    return f"{d.model.name}|{d.cluster.device.name}|{d.engine.name}|{d.layout}"
