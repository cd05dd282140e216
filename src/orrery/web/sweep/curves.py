"""Curves of a sweep: an estimate at every value, with why where there is none."""

from dataclasses import dataclass, field
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.scenario.ask import InfeasibleAnswer, estimate
from orrery.scenario.objectives import request_limits_s
from orrery.scenario.schema import read_scenario
from orrery.web.named import grounded, without_place
from orrery.web.sweep.inputs import SweepInputs
from orrery.web.sweep.metrics import Value, figures_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
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
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """All lines, over the same values, and the objectives they are held against."""

    curves: tuple[Curve, ...]
    limits_s: dict[str, float]


def swept(inputs: SweepInputs, uploads: Path) -> Swept:
    """Every point estimated. Where none can be for one and the same mistake, it is raised."""
    slo = read_scenario(grounded(inputs.settings, uploads)).slo
    errors: list[OrreryError] = []
    curves = tuple(
        Curve(
            name=inputs.line_name(line),
            points=tuple(_point(inputs, value, line, uploads, errors) for value in inputs.values),
        )
        for line in inputs.lines
    )
    if len(errors) == len(inputs.values) * len(inputs.lines) and len({str(m) for m in errors}) == 1:
        raise errors[0]
    return Swept(curves=curves, limits_s=request_limits_s(slo))


def _point(inputs: SweepInputs, value: str, line: str, uploads: Path, errors: list[OrreryError]) -> SweepPoint:
    try:
        answer = estimate(read_scenario(grounded(inputs.at_point(value, line), uploads)))
    except OrreryError as error:
        errors.append(error)
        return SweepPoint(value=value, why=without_place(str(error), uploads))
    if isinstance(answer, InfeasibleAnswer):
        return SweepPoint(value=value, why=str(answer.infeasible), notes=answer.notes)
    return SweepPoint(
        value=value,
        figures=figures_of(answer),
        bound_by=answer.estimate.bound_by,
        num_devices=answer.estimate.num_devices,
        notes=answer.notes,
    )
