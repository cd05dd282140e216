"""The integer program: one format a layer, least perturbation in all, sums of costs within their limits.

    min  sum p[u, f] x[u, f]     sum_f x[u, f] = count of u,     sum c[u, f] x[u, f] <= limit,     x whole

Layers of one class u (equal in every cost) are interchangeable, so that x counts layers instead of naming them: the
same optimum from far fewer unknowns. Solved by HiGHS to proven optimality. HAWQ-V3 (arXiv 2011.10680, section 3.3)
poses the program with two widths and the trace of the Hessian times the squared error as p.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.base.program import Program, solved
from orrery.execution.memory import Infeasible
from orrery.planner.bits.options import UNITS, Options

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLACK_FRAC = 1e-9
"""Rounding that a sum at its limit may show."""

MAX_S = 30.0
"""A search that takes longer stops with the best it has, and says so."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignment:
    """A format for each layer, as indices into the options' formats."""

    options: Options
    choice: Ints
    is_proven: bool = True  # nothing better exists

    def total(self, metric: str) -> float:
        """Latency, size or energy of the whole."""
        return self._sum(self.options.cost(metric))

    @property
    def formats(self) -> tuple[str, ...]:
        """By layer."""
        return tuple(self.options.formats[int(i)] for i in self.choice)

    @property
    def perturbation_ratio(self) -> float:
        """Perturbation (ratio) of the whole assignment, summed over its layers."""
        return self._sum(self.options.perturbation_ratio)

    def _sum(self, table: Floats) -> float:
        return float(table[np.arange(self.choice.size), self.choice].sum())


def solve(options: Options, limits: Mapping[str, float]) -> Assignment | Infeasible:
    """The least perturbation with latency, size and energy (those of ``limits``) at most what they say."""
    classes = _classes(options)
    found = _program(classes, classes.perturbation_ratio, limits)
    if found is None:
        return _shortfall(options, classes, limits)
    return Assignment(options=options, choice=classes.dealt(found.counts), is_proven=found.is_proven)


def uniform(options: Options, format: str) -> Assignment:
    """Every layer in one format."""
    return Assignment(options=options, choice=np.full(len(options.layers), options.formats.index(format)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Classes:
    """Units (layers, tied ones together) that are equal in everything: a row a class."""

    unit_of_layer: Ints
    class_of_unit: Ints
    num_units: Ints  # of each class
    perturbation_ratio: Floats
    costs: Mapping[str, Floats]

    def dealt(self, counts: Ints) -> Ints:
        """A format for each layer: the units of a class take theirs in the order of layers and formats."""
        choice = np.empty(self.class_of_unit.size, dtype=np.int64)
        for row, of_format in enumerate(counts.tolist()):
            choice[self.class_of_unit == row] = np.repeat(np.arange(len(of_format)), of_format)
        return choice[self.unit_of_layer]


def _classes(options: Options) -> _Classes:
    """Tied layers become one by adding up; then equal ones are counted."""
    ties = [layer.tied or f"\0{i}" for i, layer in enumerate(options.layers)]
    unit_of = {word: i for i, word in enumerate(dict.fromkeys(ties))}
    unit_of_layer = np.array([unit_of[word] for word in ties], dtype=np.int64)
    tables = [options.perturbation_ratio, *(options.cost(metric) for metric in UNITS)]
    added = np.zeros((len(unit_of), len(tables), len(options.formats)))
    np.add.at(added, unit_of_layer, np.stack(tables, axis=1))
    found: tuple[Floats, Ints, Ints] = np.unique(added, axis=0, return_inverse=True, return_counts=True)
    rows, of_unit, counts = found
    return _Classes(
        unit_of_layer=unit_of_layer,
        class_of_unit=of_unit.reshape(-1),
        num_units=counts,
        perturbation_ratio=rows[:, 0],
        costs={metric: rows[:, i + 1] for i, metric in enumerate(UNITS)},
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """How many units of each class take each format, and whether that is proven best."""

    counts: Ints
    is_proven: bool


def _program(classes: _Classes, objective: Floats, limits: Mapping[str, float]) -> _Found | None:
    """The program for HiGHS, its rows and objective scaled to about 1; None where nothing meets the limits."""
    num_classes, num_formats = objective.shape
    size = num_classes * num_formats
    rows = np.kron(np.eye(num_classes), np.ones(num_formats))
    capped = [classes.costs[metric].reshape(-1) / limit for metric, limit in limits.items()]
    matrix = np.array([*rows, *capped], dtype=np.float64).reshape(-1, size)
    units = classes.num_units.astype(np.float64)
    program = Program(
        cost=objective.reshape(-1) / (float(np.abs(objective).max()) or 1.0),
        matrix=matrix,
        row_low=np.concatenate([units, np.full(len(capped), -np.inf)]),
        row_high=np.concatenate([units, np.ones(len(capped))]),
        most=np.repeat(units, num_formats),
        is_whole=np.full(len(matrix[0]), True),
    )
    solution = solved(program, gap_frac=0.0, most_s=MAX_S)
    if solution is None:
        return None
    counts = np.rint(solution.x).astype(np.int64).reshape(num_classes, num_formats)
    if any((classes.costs[metric] * counts).sum() > limit * (1.0 + SLACK_FRAC) for metric, limit in limits.items()):
        return None
    return _Found(counts=counts, is_proven=solution.is_proven)


def _shortfall(options: Options, classes: _Classes, limits: Mapping[str, float]) -> Infeasible:
    """The first limit that cannot be met once those after it are: what it would have to be."""
    retained: dict[str, float] = {}
    for metric, limit in reversed(list(limits.items())):
        found = _program(classes, classes.costs[metric], retained)
        if found is None:
            break
        need = float((classes.costs[metric] * found.counts).sum())
        if need > limit * (1.0 + SLACK_FRAC):
            beside = f" with {' and '.join(retained)} within the limits" if retained else ""
            return Infeasible(
                what=f"{metric} of {len(options.layers)} layers in any mixture of {', '.join(options.formats)}{beside}",
                need=need,
                have=limit,
                unit=UNITS[metric],
                smallest_change=f"Allow {need / limit:.3g} times the {metric}, or offer a format that costs less.",
            )
        retained[metric] = limit
    raise OutOfRange(
        f"No assignment was found within {MAX_S:g} s, and none was shown to be impossible; loosen a limit."
    )
