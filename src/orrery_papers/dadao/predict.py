"""DADAO: by which power gradients grow with the condition number, and messages with the graph's."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.experiments import rows_of

GROWS = {
    "gradients": ("condition", "gradients_per_node", "the condition number"),
    "messages": ("graph_condition", "messages_per_node", "the graph's condition"),
}
"""Columns along x and y of each claim, and the name of the first."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """``orrery experiment decoupled-descent`` over condition numbers, then over rings."""
    for claim in paper.claims:
        along, counted, name = GROWS[claim.id]
        clocks, rounds = (_points(claim.setup, method, along, counted) for method in ("two clocks", "rounds"))
        listed = ", ".join(f"{y:.4g} at {x:.4g}" for x, y in clocks)
        yield Prediction(
            claim=claim.id,
            predicted=_slope(clocks),
            because=f"a node's by {name}: {listed}; rounds without acceleration grow by the power {_slope(rounds):.2f}",
            differs="on small rings the time still grows with the graph, by its logarithm at least",
        )


def _points(setup: Setup, method: str, along: str, counted: str) -> list[tuple[float, float]]:
    sizes: dict[str, float | str] = {
        "nodes": setup.word("ring_sizes").replace(" ", ""),
        "condition": setup.word("condition_ratios").replace(" ", ""),
        "target_frac": setup.number("left_error_frac"),
    }
    rows = rows_of("decoupled-descent", sizes)
    return [(float(row[along]), float(row[counted])) for row in rows if row["method"] == method]


def _slope(points: list[tuple[float, float]]) -> float:
    """The slope of a straight line through the logarithms of the points that were reached."""
    reached = np.log([point for point in points if np.isfinite(point[1])])
    return float(np.polyfit(reached[:, 0], reached[:, 1], 1)[0])
