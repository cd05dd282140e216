"""Reduction of latency at a loss of quality."""

from collections.abc import Sequence

import numpy as np

from orrery.base.experiment import Row


def reduction_at(rows: Sequence[Row], term: str, quality_lost_frac: float) -> float:
    """How much lower latency is where so much quality is lost, between the weights that lie around it."""
    found = [row for row in rows if row["term"] == term]
    lost = np.maximum.accumulate([float(row["quality_lost_frac"]) for row in found])
    return float(np.interp(quality_lost_frac, lost, [float(row["latency_reduction_frac"]) for row in found]))
