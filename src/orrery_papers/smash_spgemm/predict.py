"""SMASH: bytes of a sparse product row by row, against the better of the other two orders."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.kernels.sparse.products import by_rows, inner, outer, recursive


def predict(paper: Paper) -> Iterator[Prediction]:
    """The ratio of bytes that memory moves."""
    setup, random = paper.setups["rmat"], np.random.default_rng(0)
    scale, each = int(setup.number("num_row_doublings")), int(setup.number("num_entries_per_row"))
    left, right = (recursive(scale, each, random) for _ in range(2))
    rows, columns, partial = (form(left, right) for form in (by_rows, inner, outer))
    rival = min(columns.memory_bytes, partial.memory_bytes)
    yield Prediction(
        claim="speedup",
        predicted=rival / rows.memory_bytes,
        because=f"{left.num_rows} rows, {left.num_entries} entries: {rows.memory_bytes:.3g} bytes row by row with "
        f"{rows.num_atomics:.3g} atomics, {partial.memory_bytes:.3g} outer, {columns.memory_bytes:.3g} inner",
        differs="which rival is meant, the matrices, and how its threads and scratchpads are used on that machine",
    )
