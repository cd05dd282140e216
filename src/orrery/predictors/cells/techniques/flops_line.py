"""FLOPs line: latency in proportion to multiply-adds, plus a constant, by least squares; the usual stand-in.

[dudziak-2020-brp-nas]
"""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.predictors.cells.learned import Fit, OnStep, Predictor, Samples


def _fit(samples: Samples) -> Predictor:
    """The two coefficients; the slope is never below zero, so that more work never ranks as faster."""
    plan = samples.plan
    work = plan.total(plan.flops, samples.cells)
    spread = work - work.mean()
    slope = max(float(spread @ samples.latency_s) / float(spread @ spread), 1e-18)
    first = float(samples.latency_s.mean() - slope * work.mean())
    least = 0.1 * float(samples.latency_s.min())
    return lambda cells: np.maximum(first + slope * plan.total(plan.flops, cells), least)


def rule(knobs: NoKnobs, on_step: OnStep) -> Fit:
    """Return the fit; it needs no preparation."""
    return _fit


TECHNIQUE = Technique(
    name="flops-line",
    extension_point="predictors.cell-latency",
    rule=rule,
    gains="Two numbers, from two timings or more, on any machine.",
    costs="Blind to bytes, launches and operations without multiplications.",
    claims=("dudziak-2020-brp-nas",),
)
