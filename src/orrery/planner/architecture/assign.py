"""The integer program: one alternative a choice, least cost in all, sums of other costs within their limits.

    min  sum g[u, a] x[u, a]     sum_a x[u, a] = count of u,     sum c[u, a] x[u, a] <= limit,     x whole

Choices of one class u (equal in every table) are interchangeable, so that x counts choices instead of naming them: the
same optimum from far fewer unknowns. An alternative that a choice lacks has a cost of nan. Solved by HiGHS.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.program import Program, solved

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLACK_FRAC = 1e-9
"""Rounding that a sum at its limit may show."""

MAX_S = 30.0
"""A search that takes longer stops with the best it has, and says so."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assigned:
    """An alternative for each choice; ``bound``: no assignment within the limits costs less."""

    choice: Ints
    cost: float
    bound: float
    is_proven: bool


def assigned(
    goal: Floats, tables: Mapping[str, Floats], limits: Mapping[str, float], gap_frac: float = 0.0
) -> Assigned | None:
    """The least sum of ``goal`` with the sums of the limited ``tables`` at most what they say; None: there is none.

    ``gap_frac``: how far from the best the answer may be. Choices that are equal in the goal and in all tables, limited
    or not, take their alternatives in order.
    """
    rows, of_choice, counts = _classes([goal, *tables.values()])
    by_name = {name: rows[:, i + 1] for i, name in enumerate(tables)}
    found = _counted(rows[:, 0], {name: by_name[name] for name in limits}, limits, counts.astype(np.float64), gap_frac)
    if found is None:
        return None
    taken, bound, is_proven = found
    choice = np.empty(of_choice.size, dtype=np.int64)
    for row, of_alternative in enumerate(taken.tolist()):
        choice[of_choice == row] = np.repeat(np.arange(len(of_alternative)), of_alternative)
    cost = float(goal[np.arange(choice.size), choice].sum())
    return Assigned(choice=choice, cost=cost, bound=min(bound, cost), is_proven=is_proven)


def _classes(tables: list[Floats]) -> tuple[Floats, Ints, Ints]:
    """Every kind of choice once, which kind each choice is, and how many there are of each."""
    filled = np.nan_to_num(np.stack(tables, axis=1), nan=np.inf)  # rows with nan would equal no other
    found: tuple[Floats, Ints, Ints] = np.unique(filled, axis=0, return_inverse=True, return_counts=True)
    rows, of_choice, counts = found
    return np.where(np.isinf(rows), np.nan, rows), of_choice.reshape(-1), counts


def _counted(
    goal: Floats, costs: Mapping[str, Floats], limits: Mapping[str, float], counts: Floats, gap_frac: float
) -> tuple[Ints, float, bool] | None:
    """How many choices of each class take each alternative, the bound, and whether that is proven best."""
    num_classes, num_alternatives = goal.shape
    is_there = ~np.isnan(goal).reshape(-1)
    scale = float(np.nanmax(np.abs(goal))) or 1.0
    flat = {name: np.nan_to_num(table).reshape(-1) for name, table in costs.items()}
    size = {name: abs(limit) or float(np.abs(flat[name]).max()) or 1.0 for name, limit in limits.items()}
    rows = np.kron(np.eye(num_classes), np.ones(num_alternatives))
    matrix = np.array([*rows, *(flat[name] / size[name] for name in limits)], dtype=np.float64)
    most = [limit / size[name] for name, limit in limits.items()]
    solution = solved(
        Program(
            cost=np.nan_to_num(goal).reshape(-1) / scale,
            matrix=matrix.reshape(-1, goal.size),
            row_low=np.concatenate([counts, np.full(len(limits), -np.inf)]),
            row_high=np.concatenate([counts, most]),
            most=np.where(is_there, np.repeat(counts, num_alternatives), 0.0),
            is_whole=np.full(goal.size, True),
        ),
        gap_frac=gap_frac,
        most_s=MAX_S,
    )
    if solution is None:
        return None
    taken = np.rint(solution.x).astype(np.int64)
    slack = {name: abs(limit) * SLACK_FRAC for name, limit in limits.items()}
    if any(float(flat[name] @ taken) > limit + slack[name] for name, limit in limits.items()):
        return None
    return taken.reshape(goal.shape), solution.bound * scale, solution.is_proven
