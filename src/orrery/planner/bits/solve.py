"""The integer program over formats: one a layer, least perturbation in all, sums of costs within their limits.

HAWQ-V3 (arXiv 2011.10680, section 3.3) poses the program with two widths and the trace of the Hessian times the squared
error as the perturbation.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.execution.memory import Infeasible
from orrery.planner.architecture.assign import MAX_S, SLACK_FRAC, assigned
from orrery.planner.bits.options import UNITS, Options

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    units = _units(options)
    found = assigned(units.perturbation_ratio, units.costs, limits)
    if found is None:
        return _shortfall(options, units, limits)
    return Assignment(options=options, choice=found.choice[units.unit_of_layer], is_proven=found.is_proven)


def uniform(options: Options, format: str) -> Assignment:
    """Every layer in one format."""
    return Assignment(options=options, choice=np.full(len(options.layers), options.formats.index(format)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Units:
    """Layers that share a choice, added up: a row a unit, and the unit of each layer."""

    unit_of_layer: Ints
    perturbation_ratio: Floats
    costs: Mapping[str, Floats]


def _units(options: Options) -> _Units:
    """Tied layers become one by adding up."""
    ties = [layer.tied or f"\0{i}" for i, layer in enumerate(options.layers)]
    unit_of = {word: i for i, word in enumerate(dict.fromkeys(ties))}
    unit_of_layer = np.array([unit_of[word] for word in ties], dtype=np.int64)
    tables = [options.perturbation_ratio, *(options.cost(metric) for metric in UNITS)]
    added = np.zeros((len(unit_of), len(tables), len(options.formats)))
    np.add.at(added, unit_of_layer, np.stack(tables, axis=1))
    return _Units(
        unit_of_layer=unit_of_layer,
        perturbation_ratio=added[:, 0],
        costs={metric: added[:, i + 1] for i, metric in enumerate(UNITS)},
    )


def _shortfall(options: Options, units: _Units, limits: Mapping[str, float]) -> Infeasible:
    """The first limit that cannot be met once those after it are: what it would have to be."""
    retained: dict[str, float] = {}
    for metric, limit in reversed(list(limits.items())):
        found = assigned(units.costs[metric], units.costs, retained)
        if found is None:
            break
        need = found.cost
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
