"""Tables of training runs on the scorecard: steps, memory, and whether a run fits at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from baselines_training import Step, fit_groups, rivals, stated_time, steps
from orrery.evidence.answers import Answers
from orrery.evidence.check import check_table
from orrery.evidence.checked import Checked
from orrery.evidence.metrics import FITS
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import read_table
from orrery.evidence.training_row import is_out_of_memory
from orrery.evidence.training_rows import RATES, read
from scorecard_rows import Scored, Words

Floats = NDArray[np.float64]

STEP = "step"
"""Seconds of a step, from whichever metric of time a row states, so that each row counts once."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One table with its answers, its sides, and its rows as steps."""

    checked: Checked
    side: Words
    rows: list[Step]


def training_tables(data: Path) -> list[Measured]:
    """Every table of training runs under ``data``."""
    out: list[Measured] = []
    for path in sorted((data / "training").glob("*.csv*")):
        checked = check_table(read_table(path))
        answered = np.flatnonzero(checked.counted)
        known = [int(r) for r in answered if int(r) not in checked.answers.declined]
        rows = steps(read(checked.table, np.array(known, dtype=np.int64), Answers(len(checked.table))))
        out.append(Measured(checked, sides(checked.table, "training"), rows))
    return out


def training_metrics(tables: Sequence[Measured]) -> Iterator[Scored]:
    """Every metric of every table on its test rows; the closed form learns from the fit rows of all tables."""
    constants = fit_groups([(r, str(t.side[r.number])) for t in tables for r in t.rows])
    for table in tables:
        rows = [r for r in table.rows if table.side[r.number] == TEST]
        times = np.array([rivals(r, constants) for r in rows])
        for metric in (STEP, *table.checked.measured):
            if (scored := _metric(table.checked, metric, rows, times)) is not None:
                yield scored


def _metric(checked: Checked, metric: str, rows: Sequence[Step], times: Floats) -> Scored | None:
    """One metric of the rows that state it; None where none does."""
    stated = [(*stated_time(r.member), r) if metric == STEP else (metric, 0.0, r) for r in rows]
    mask = np.array([bool(m) and bool(checked.scored(m)[r.number]) for m, _, r in stated], dtype=np.bool_)
    if not mask.any():
        return None
    known = [s for s, is_known in zip(stated, mask, strict=True) if is_known]
    numbers = np.array([r.number for _, _, r in known])
    inside = [
        np.array([checked.answers.inside(m, checked.measured[m], p)[r.number] for m, _, r in known]) for p in (80, 95)
    ]
    ours_s = np.array([r.ours_s for _, _, r in known])
    roofline_s, closed_s = times[mask].T
    if metric == STEP:
        measured, ours = np.array([t for _, t, _ in known]), ours_s
    elif metric == FITS:  # 1 where foreseen, so that the relative error is 0 or 1
        measured = np.ones(len(known))
        ours = measured + checked.error(FITS, numbers)
    else:
        measured, ours = checked.measured[metric][numbers], checked.answers.predicted[metric][numbers]
    roofline, closed = (_as(metric, ours, t / ours_s) for t in (roofline_s, closed_s))
    return Scored(
        table=checked.table.name,
        kind="training",
        metric=metric,
        words=_words([r for _, _, r in known]),
        measured=measured,
        ours=ours,
        roofline=roofline,
        closed=closed,
        physics=ours,
        inside_80=inside[0],
        inside_95=inside[1],
    )


def _as(metric: str, ours: Floats, slower_ratio: Floats) -> Floats:
    """What a rival says of a metric, from how much slower than ours it takes the step to be; NaN of memory."""
    if metric in RATES:
        return ours / slower_ratio
    return np.full(len(ours), np.nan) if metric in (FITS, "peak_memory_bytes") else ours * slower_ratio


def _words(rows: Sequence[Step]) -> dict[str, Words]:
    """What rows are grouped by."""
    lines = [_row_words(r) for r in rows]
    return {k: np.array([line[k] for line in lines]) for k in lines[0]}


def _row_words(step: Step) -> dict[str, str]:
    job, layout, row = step.member.job, step.member.layout, step.member.row
    model = "|".join(row.word(c) for c in ("model", "num_layers", "hidden_size"))
    group = (model, str(job.seq_len), job.cluster.device.name, str(layout.num_devices), job.recipe.name)
    return {
        "framework": job.framework.name,
        "device": job.cluster.device.name,
        "precision": job.recipe.name,
        "task": "pretrain" if job.task in ("pretrain", "forward_backward") else "finetune",
        "num_devices": f"{layout.num_devices:06d}",
        "group": " ".join(group),
        "layout": str(layout),
        "tokens": str(job.tokens_per_step * 1.0 / layout.num_devices),
        "size": ">= 1B" if job.model.num_parameters >= 1e9 else "< 1B",
        "states": "devices" if row.word("num_devices") else "no devices",
        "outcome": "out of memory" if is_out_of_memory(row) else "ran",
    }
