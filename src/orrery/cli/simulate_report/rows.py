"""One row a request: when it came, waited, started, ended, how long it was, and who served it."""

import csv
import io
import math

import numpy as np

from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.result import Simulated

Columns = dict[str, Floats | Ints]
"""Columns of equal length by name; times are ``nan`` where something never happened."""


def request_columns(simulated: Simulated) -> Columns:
    """The requests of a run as a table. Without sessions everybody is -1, without clients 0."""
    requests = simulated.requests
    count = requests.count

    def or_all(column: Ints, value: int) -> Ints:
        return column if column.size == count else np.full(count, value, dtype=np.int64)

    return {
        "arrive_s": simulated.arrive_s,
        "admitted_s": simulated.admitted_s,
        "first_token_s": simulated.first_token_s,
        "finish_s": simulated.finish_s,
        "input_tokens": requests.input_tokens,
        "output_tokens": requests.output_tokens,
        "cached_tokens": simulated.cached_tokens,
        "preemptions": simulated.preemptions,
        "machine": simulated.machine,
        "session": or_all(requests.session, -1),
        "client": or_all(requests.client, 0),
    }


def csv_text(columns: Columns) -> str:
    """The table with a header line; an empty cell is a time that never came."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_cells(column) for column in columns.values()), strict=True))
    return out.getvalue()


def _cells(column: Floats | Ints) -> list[float | int | str]:
    cells: list[float | int | str] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return ["" if isinstance(cell, float) and not math.isfinite(cell) else cell for cell in cells]
    return cells
