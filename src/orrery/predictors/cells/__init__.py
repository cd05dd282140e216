"""Convolutional networks to search among: spaces that they are drawn from, their kernels, and how long they take."""

from typing import Any

from orrery.base.extension_points import ExtensionPoint
from orrery.predictors.cells import techniques
from orrery.predictors.cells.learned import Fit, OnStep, ignore

__all__ = ["PREDICTORS", "rule"]

PREDICTORS = ExtensionPoint(name="predictors.cell-latency", folder=techniques, noun="predictor of latency")


def rule(name: str, on_step: OnStep = ignore, **knobs: Any) -> Fit:
    """The technique called ``name``, prepared."""
    found = PREDICTORS.get(name)
    return found.rule(found.knobs(**knobs), on_step)
