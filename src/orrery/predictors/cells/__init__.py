"""Convolutional networks to search among: spaces that they are drawn from, their kernels, and how long they take."""

from typing import Any

from orrery.base.extension_points import technique_at
from orrery.predictors.cells import techniques
from orrery.predictors.cells.learned import Fit, OnStep, ignore

__all__ = ["rule"]


def rule(name: str, on_step: OnStep = ignore, **knobs: Any) -> Fit:
    """The technique called ``name`` at the seam ``predictors.cell-latency``, prepared."""
    found = technique_at(techniques, "predictors.cell-latency", name)
    return found.rule(found.knobs(**knobs), on_step)
