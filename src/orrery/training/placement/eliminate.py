"""The cheapest choice of many, whose costs are tables over a few choices at a time: variable elimination.

    min over all x of sum of tables f(x_i, x_j, ...)

One variable after the other is minimised out: the tables that mention it are added up, its best value for every
combination of the others is noted, and what is left is a table over those others. On a chain this is the usual dynamic
programme; a residual connection makes tables over one variable more. Exact for any graph. [dechter-1999]
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Costs over the values of some variables, one axis each, in seconds."""

    variables: tuple[str, ...]
    costs_s: Floats


def minimise(sizes: Mapping[str, int], tables: Sequence[Table]) -> tuple[float, dict[str, int]]:
    """The least sum, and the value of every variable; ``sizes`` counts each variable's values."""
    left: list[Table] = list(tables)
    total_s = 0.0
    found: list[tuple[str, Table, NDArray[np.intp]]] = []
    remaining = dict(sizes)
    while remaining:
        variable = min(remaining, key=lambda v: _cost(v, left, sizes))
        touching = [t for t in left if variable in t.variables]
        left = [t for t in left if variable not in t.variables]
        others = tuple(dict.fromkeys(v for t in touching for v in t.variables if v != variable))
        summed = _sum((variable, *others), touching, sizes)
        rest = Table(variables=others, costs_s=summed.min(axis=0))
        found.append((variable, rest, summed.argmin(axis=0)))
        if others:
            left.append(rest)
        else:
            total_s += float(rest.costs_s)
        del remaining[variable]
    values: dict[str, int] = {}
    for variable, rest, best in reversed(found):
        values[variable] = int(best[tuple(values[v] for v in rest.variables)])
    return total_s, values


def _cost(variable: str, tables: Sequence[Table], sizes: Mapping[str, int]) -> int:
    """Entries of the table that eliminating this variable needs."""
    return math.prod(sizes[v] for v in {v for t in tables if variable in t.variables for v in t.variables})


def _sum(variables: tuple[str, ...], tables: Sequence[Table], sizes: Mapping[str, int]) -> Floats:
    total = np.zeros([sizes[v] for v in variables])
    for table in tables:
        order = sorted(range(len(table.variables)), key=lambda i: variables.index(table.variables[i]))
        shape = [sizes[v] if v in table.variables else 1 for v in variables]
        total += table.costs_s.transpose(order).reshape(shape)
    return total
