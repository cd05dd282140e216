"""Rows of RL post-training to predictions: each is one step, every sequence simulated."""

from orrery.base.cost import Interval
from orrery.base.errors import OrreryError, UnknownName
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.rl_row import read_rl_row
from orrery.evidence.row import Row
from orrery.evidence.tables import Table
from orrery.evidence.training_rows import Progress
from orrery.execution.memory import Infeasible
from orrery.rl.error_range import step_interval
from orrery.rl.step import RlStep, rl_step

TASK = "rl"
"""The word of the column ``task`` that marks such rows."""

RATE = "tokens_per_s_per_device"


def answer(table: Table, rows: Rows, answers: Answers, on_progress: Progress | None = None) -> None:
    """Predict step time and tokens of every row; equal rows are simulated once."""
    known: dict[tuple[str, ...], RlStep | str] = {}
    key_columns = [
        c for c in table.columns if c not in ("row_id", "source", "source_section", "note", "step_time_s", RATE)
    ]
    for done, number in enumerate(map(int, rows), 1):
        row = Row({c: v[number] for c, v in table.columns.items()})
        key = tuple(row.word(c) for c in key_columns)
        if key not in known:
            known[key] = _step(row)
        found = known[key]
        if isinstance(found, str):
            answers.decline([number], found)
        else:
            answers.assumed.update(row.assumed)
            _note(answers, number, row, found)
        if on_progress:
            on_progress(done, len(rows))


def _step(row: Row) -> RlStep | str:
    """The step, or why there is none."""
    try:
        found = rl_step(read_rl_row(row))
    except UnknownName as error:
        return f"unknown {error.kind} {error.name}"
    except OrreryError as error:
        return str(error)
    return str(found) if isinstance(found, Infeasible) else found


def _note(answers: Answers, number: int, row: Row, step: RlStep) -> None:
    interval = step_interval(step)
    if row.word("step_time_s"):
        answers.predict_one("step_time_s", number, step.time_s, interval)
    if row.word(RATE):
        scale = step.trained_tokens / step.job.num_devices
        ends = Interval(
            low_80=scale / interval.high_80,
            high_80=scale / interval.low_80,
            low_95=scale / interval.high_95,
            high_95=scale / interval.low_95,
            because=interval.because,
        )
        answers.predict_one(RATE, number, scale / step.time_s, ends)
