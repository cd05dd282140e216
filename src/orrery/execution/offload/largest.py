"""The largest model that a schedule of offloading trains on given tiers."""

from collections.abc import Callable
from dataclasses import dataclass

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import Tiers, shortage
from orrery.execution.offload.work import Work

PRECISION_RATIO = 1.005
"""Bisection ends when the sizes that fit and do not fit are this close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The largest size that fits, its step, and what the next size lacks."""

    num_parameters: float  # of the whole model
    step: OffloadedStep
    infeasible: Infeasible | None  # None where even the largest size tried fits


def largest_model(
    schedule: Callable[[Work], OffloadedStep],
    tiers: Tiers,
    work_of: Callable[[float], Work],
    *,
    least_parameters: float = 1e8,
    most_parameters: float = 1e14,
) -> Largest | Infeasible:
    """Sizes are doubled until one does not fit, then bisected; Infeasible where even the least does not fit.

    ``schedule`` is a technique's rule with its tiers and knobs filled in; ``work_of`` makes the work of one device for
    a model of so many parameters.
    """
    if not 0 < least_parameters < most_parameters:
        raise ScenarioError(
            f"least_parameters = {least_parameters:g}, most_parameters = {most_parameters:g}; write the least first."
        )

    def tried(size: float) -> tuple[OffloadedStep, Infeasible | None]:
        step = schedule(work_of(size))
        return step, shortage(step.held, tiers, f"a model of {size / 1e9:.3g} billion parameters")

    fits = least_parameters
    best, infeasible = tried(fits)
    if infeasible is not None:
        return infeasible
    fails = fits
    while infeasible is None:
        if fits >= most_parameters:
            return Largest(num_parameters=fits, step=best, infeasible=None)
        fails = min(2.0 * fits, most_parameters)
        step, infeasible = tried(fails)
        if infeasible is None:
            fits, best = fails, step
    while fails > fits * PRECISION_RATIO:
        middle = (fits * fails) ** 0.5
        step, missing = tried(middle)
        if missing is None:
            fits, best = middle, step
        else:
            fails, infeasible = middle, missing
    return Largest(num_parameters=fits, step=best, infeasible=infeasible)
