"""Score tables of measured runs: predict every row, compare, and say what was declined and why."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.arguments import typed
from orrery.catalog.devices import get_device
from orrery.evidence import (
    collective_rows,
    diffusion_rows,
    kernel_rows,
    rl_rows,
    serving_rows,
    training_rows,
    workload_rows,
)
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.checked import Checked
from orrery.evidence.columns import check_columns, kinds_of
from orrery.evidence.grouping import check_by, without, words_of
from orrery.evidence.metrics import (
    FITS,
    OUT_OF_MEMORY,
    OUTCOME_COLUMNS,
    RAN,
    measured_columns,
)
from orrery.evidence.report import Group, Report
from orrery.evidence.score import score_errors
from orrery.evidence.tables import Table, read_table
from orrery.evidence.write import write_rows

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


@typed
def check(
    paths: Sequence[Path | str],
    by: Sequence[str] = (),
    on_progress: Progress | None = None,
    out: Path | None = None,
    exclude: Sequence[str] = (),
) -> Report:
    """Predict every row of the tables and score each metric, over all rows and by the words of ``by``.

    ``out`` names a CSV file for the rows with their predictions; ``on_progress`` is told (rows done, rows in all).
    ``exclude`` leaves out rows by conditions such as ``device=h100*``. Columns may also be ``campaign`` and ``side``.
    """
    tables = [diffusion_rows.translated(read_table(Path(p))) for p in paths]
    check_by(by, tables)
    tables, excluded = without(tables, exclude)
    checked = [check_table(table, on_progress) for table in tables]
    if out is not None:
        write_rows(Path(out), checked)
    return replace(report(checked, by), excluded=excluded)


def check_table(table: Table, on_progress: Progress | None = None, *, is_learned: bool = True) -> Checked:
    """Predict every row of one table; ``is_learned`` = False leaves out what was learned on top of kernel physics."""
    table = diffusion_rows.translated(table)
    kinds = kinds_of(table)
    check_columns(table, kinds)
    measured, counted = _measurements(table, kinds)
    answers = Answers(len(table))
    for column, values in measured.items():
        if column != FITS:
            answers.decline(_rows((values <= 0) | np.isinf(values)), f"{column} is not a positive number")
    if (rows := _rows(counted & (kinds == "kernel"))).size:
        find = get_device if is_learned else kernel_rows.unlearned_device
        kernel_rows.answer(table, rows, answers, find=find)
    if (rows := _rows(counted & (kinds == "collective"))).size:
        collective_rows.answer(table, rows, answers)
    if (rows := _rows(counted & (kinds == diffusion_rows.KIND))).size:
        diffusion_rows.answer(table, rows, answers)
    if (rows := _rows(counted & (kinds == workload_rows.KIND))).size:
        workload_rows.answer(table, rows, answers)
    if (rows := _rows(counted & (kinds == "serving"))).size:
        serving_rows.answer(table, rows, answers, on_progress)
    is_rl = np.char.lower(table.words("task")) == rl_rows.TASK if "task" in table.columns else np.zeros_like(counted)
    if (rows := _rows(counted & (kinds == "training") & ~is_rl)).size:
        training_rows.answer(table, rows, answers, on_progress)
    if (rows := _rows(counted & (kinds == "training") & is_rl)).size:
        rl_rows.answer(table, rows, answers, on_progress)
    return Checked(table=table, measured=measured, answers=answers, counted=counted)


def _rows(mask: NDArray[np.bool_]) -> Rows:
    return np.flatnonzero(mask)


def _measurements(table: Table, kinds: NDArray[np.str_]) -> tuple[dict[str, Floats], NDArray[np.bool_]]:
    """Every measured column as numbers (with ``fits`` from the outcome columns), and which rows state any."""
    columns = list(table.columns)
    measured: dict[str, Floats] = {}
    for kind in sorted(set(kinds.tolist())):
        for column in measured_columns(kind, columns):
            values = np.where(kinds == kind, table.numbers(column), np.nan)
            earlier = measured.get(column)
            measured[column] = values if earlier is None else np.where(np.isnan(earlier), values, earlier)
    outcome = _outcome(table, measured)
    if outcome is not None:
        measured[FITS] = outcome
    counted = np.zeros(len(table), dtype=np.bool_)
    for values in measured.values():
        counted |= ~np.isnan(values)
    return measured, counted


def _outcome(table: Table, measured: dict[str, Floats]) -> Floats | None:
    """1 where a run ended well, 0 where memory ran out, NaN where it failed otherwise; None if no row says."""
    present = [c for c in OUTCOME_COLUMNS if c in table.columns]
    if not present:
        return None
    states = np.zeros(len(table), dtype=np.bool_)
    for values in measured.values():
        states |= np.isfinite(values)
    out = np.where(states, 1.0, np.nan)
    for column in present:
        words = np.char.lower(table.words(column))
        out[~np.isin(words, sorted(RAN))] = np.nan
        out[np.isin(words, sorted(OUT_OF_MEMORY))] = 0.0
    return out


def report(tables: Sequence[Checked], by: Sequence[str] = ()) -> Report:
    """The scores of checked tables together: first over all rows, then by the words of ``by``."""
    metrics = list(dict.fromkeys(m for t in tables for m in (*t.measured,)))
    declined: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for t in tables:
        declined.update(reason for row, reason in t.answers.declined.items() if t.counted[row])
        for metric in metrics:
            left_out[metric] += _not_predicted(t, metric)
    return Report(
        rows=sum(int(t.counted.sum()) for t in tables),
        declined=declined,
        groups=[*_groups(tables, metrics, ()), *(_groups(tables, metrics, by) if by else ())],
        assumed=sum((t.answers.assumed for t in tables), Counter[str]()),
        left_out=+left_out,
        beat_bound=sum(int(t.beats_bound().sum()) for t in tables),
    )


def _not_predicted(t: Checked, metric: str) -> int:
    """Cells of answered rows whose metric has no prediction."""
    if metric not in t.measured:
        return 0
    stated = np.isfinite(t.measured[metric]) & ~t.scored(metric)
    stated[list(t.answers.declined)] = False
    return int(stated.sum())


def _groups(tables: Sequence[Checked], metrics: Sequence[str], by: Sequence[str]) -> list[Group]:
    """One group for each metric and each combination of words that occurs."""
    out: list[Group] = []
    columns = [[words_of(t.table, c) for c in by] for t in tables]
    for metric in metrics:
        parts: dict[tuple[str, ...], list[tuple[Floats, Floats, Floats]]] = {}
        for t, words in zip(tables, columns, strict=True):
            for key, mask in _split(t.scored(metric), words):
                measured = t.measured[metric]
                inside = [t.answers.inside(metric, measured, percent)[mask] for percent in (80, 95)]
                parts.setdefault(key, []).append((t.error(metric, mask), inside[0], inside[1]))
        for key in sorted(parts):
            error, inside_80, inside_95 = (np.concatenate(column) for column in zip(*parts[key], strict=True))
            score = score_errors(error, inside_80, inside_95)
            out.append(Group(by=dict(zip(by, key, strict=True)), metric=metric, score=score))
    return out


def _split(
    rows: NDArray[np.bool_], columns: Sequence[NDArray[np.str_]]
) -> list[tuple[tuple[str, ...], NDArray[np.bool_]]]:
    """The chosen rows by their words in some columns, as (words, mask)."""
    index = np.flatnonzero(rows)
    if not index.size:
        return []
    if not columns:
        return [((), rows)]
    members: dict[tuple[str, ...], list[int]] = {}
    for row in index.tolist():
        members.setdefault(tuple(str(c[row]) for c in columns), []).append(row)
    out: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = []
    for key, chosen in members.items():
        mask = np.zeros(len(rows), dtype=np.bool_)
        mask[chosen] = True
        out.append((key, mask))
    return out
