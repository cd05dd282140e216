"""Inputs of a search from one space and device: choices, costs of alternatives, and a stand-in for quality."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from orrery.planner.architecture.problem import Choice, Metric, Networks
from orrery.planner.architecture.toys import Toy

Floats = NDArray[np.float64]

UNITS = {
    "latency": "s",
    "energy": "j",
    "memory": "bytes",
    "parameters": "",
    "work": "",
    "score": "",
}
"""Metrics in the order of tables, and their units."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Costs:
    """A space on one device.

    ``likened`` says what the stand-in for the score is.
    """

    choices: tuple[Choice, ...]
    metrics: Mapping[str, Metric]
    stand_in: Metric
    likened: str
    reference_name: str
    reference: Mapping[str, float]  # metrics of the reference
    parent: Networks | None = None  # the reference as a network of the space, where it is one
    held_bytes: Floats | None = None  # of results, that training keeps of every alternative
    held_at_most_bytes: float = inf  # memory of the device, where networks must fit it
    toy: Toy | None = None  # what is trained where scores are
    notes: tuple[str, ...] = ()


def squared_shares(capacity: Floats) -> Floats:
    """The stand-in for what an alternative loses: the squared share of its choice's capacity that it leaves out."""
    return -((1.0 - capacity) ** 2)


def shares(table: Floats) -> Floats:
    """Every alternative's share of the most that its choice offers; 1 where a choice offers none at all."""
    most = np.nanmax(table, axis=1, keepdims=True)
    return np.where(most > 0.0, table / np.where(most > 0.0, most, 1.0), np.where(np.isnan(table), np.nan, 1.0))
