"""Slices of tensor parallelism that take turns: the step for numbers of slices beside those that were asked for."""

from dataclasses import replace
from itertools import product

from orrery.execution.train.job import TrainingJob
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed
from orrery.training.columns import columns_of
from orrery.training.step import step_of

SLICED = "domino"
ROWS, COLUMNS = (1, 2, 4), (1, 2, 4)


def with_slices(scenario: Scenario, plain: Changed) -> Changed:
    """The same step; a table of other numbers of slices, the fastest first."""
    if plain.job.tensor_overlap != SLICED or plain.layout.tp == 1:
        return plain
    own = dict(plain.job.tensor_knobs)
    columns = columns_of([plain.layout])
    rows = [
        {
            "row_slices": rows,
            "column_slices": slices,
            "step_s": float(step_of(_sliced(plain.job, own, rows, slices), columns).time_s[0]),
        }
        for rows, slices in product(ROWS, COLUMNS)
    ]
    fastest = sorted(rows, key=lambda row: row["step_s"])
    note = "tensor_overlap: --knob tensor_overlap.row_slices=…,tensor_overlap.column_slices=… takes other slices"
    title = "Slices of rows and of columns that take turns, the fastest first"
    return plain.saying(Table(kind="slices", title=title, rows=tuple(fastest)), notes=(note,))


def _sliced(job: TrainingJob, own: dict[str, float], rows: int, columns: int) -> TrainingJob:
    knobs = own | {"row_slices": float(rows), "column_slices": float(columns)}
    return replace(job, tensor_knobs=tuple(knobs.items()))
