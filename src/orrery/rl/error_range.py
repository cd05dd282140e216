"""Uncertainty of a step: the errors of serving and of training, each through the part of the step that it moves.

Engines and trainers are measured apart, so their errors are taken as independent: half-widths, in the logarithm, are
weighted by the share of the step that goes with each, and add as squares. Side by side, the pool that waits moves
nothing. Hand-overs and the driver rest on single measurements: a factor of two either way.
"""

from collections.abc import Mapping
from math import exp, hypot, log

from orrery.base.cost import Interval, Spread
from orrery.rl.step import RlStep
from orrery.serving.extrapolation import UNMEASURED, VERSIONLESS
from orrery.training.error_range import spread_of

OF_ENGINE = ("generation",)
OF_HANDING_OVER = ("weight sync", "offload", "framework", "reward")

UNSURE = Spread(
    low_80_ratio=0.6,
    high_80_ratio=1.6,
    low_95_ratio=0.4,
    high_95_ratio=2.5,
    because="single measurements of other runs; assumed",
)

ENDS = ("low_80", "high_80", "low_95", "high_95")


def step_interval(step: RlStep) -> Interval:
    """Around the seconds of a step."""
    engine, trainer = engine_spread(step), spread_of(step.job.training, "step_time_s") or UNSURE
    shares = _shares(step)
    ends: dict[str, float] = {}
    for end in ENDS:
        logs = [
            shares[name] * log(getattr(spread, f"{end}_ratio"))
            for name, spread in (("engine", engine), ("trainer", trainer), ("other", UNSURE))
        ]
        sign = -1.0 if end.startswith("low") else 1.0
        ends[end] = step.time_s * exp(sign * hypot(*logs))
    return Interval(**ends, because="errors of measured serving and training runs, independent, by their shares")


def _shares(step: RlStep) -> Mapping[str, float]:
    """Shares of the step, by what moves it: with both pools at work, the one that is waited for."""
    phases, whole = step.phases, step.time_s
    other = sum(phases.get(name, 0.0) for name in OF_HANDING_OVER) / whole
    if step.pace is None:
        engine = sum(phases.get(name, 0.0) for name in OF_ENGINE) / whole
    else:
        engine = 0.0 if step.limited_by == "training" else 1.0 - other
    return {"engine": engine, "trainer": max(0.0, 1.0 - engine - other), "other": other}


def engine_spread(step: RlStep) -> Spread:
    """Spread of the errors of an offline run on such an engine."""
    deployment = step.job.generation
    kind = "offline experts" if any(b.experts for b in deployment.model.blocks) else "offline"
    found = deployment.engine.spreads.get(f"{kind}.tpot_s", UNMEASURED)
    return found if deployment.engine.version else found.widened(VERSIONLESS, found.because)
