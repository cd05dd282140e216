"""Curves of a sweep: an estimate at every value, with why where there is none."""

from dataclasses import dataclass, field
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.scenario.ask import CannotBe, estimate
from orrery.scenario.objectives import request_limits_s
from orrery.scenario.schema import read_scenario
from orrery.web.named import grounded, without_place
from orrery.web.sweep.asked import Asked
from orrery.web.sweep.metrics import Value, figures_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One value on one line: its figures, or why there are none."""

    value: str
    figures: dict[str, Value] = field(default_factory=dict[str, Value])
    bound_by: str = ""
    num_devices: int = 0
    notes: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line."""

    name: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """All lines, over the same values, and the objectives they are held against."""

    curves: tuple[Curve, ...]
    limits_s: dict[str, float]


def swept(asked: Asked, uploads: Path) -> Swept:
    """Every point estimated. Where none can be for one and the same mistake, it is raised."""
    slo = read_scenario(grounded(asked.settings, uploads)).slo
    mistakes: list[OrreryError] = []
    curves = tuple(
        Curve(
            name=asked.line_name(line),
            spots=tuple(_spot(asked, value, line, uploads, mistakes) for value in asked.values),
        )
        for line in asked.lines
    )
    if len(mistakes) == len(asked.values) * len(asked.lines) and len({str(m) for m in mistakes}) == 1:
        raise mistakes[0]
    return Swept(curves=curves, limits_s=request_limits_s(slo))


def _spot(asked: Asked, value: str, line: str, uploads: Path, mistakes: list[OrreryError]) -> Spot:
    try:
        answer = estimate(read_scenario(grounded(asked.at_point(value, line), uploads)))
    except OrreryError as error:
        mistakes.append(error)
        return Spot(value=value, why=without_place(str(error), uploads))
    if isinstance(answer, CannotBe):
        return Spot(value=value, why=str(answer.infeasible), notes=answer.notes)
    return Spot(
        value=value, figures=figures_of(answer), bound_by=answer.estimate.bound_by,
        num_devices=answer.estimate.num_devices, notes=answer.notes,
    )  # fmt: skip
