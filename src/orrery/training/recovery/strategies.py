"""How long training takes when whole stages go: rolled back, computed twice, or made from neighbours.

Each of S stages is lost with probability f an hour, so a step of t seconds loses one with

    q = 1 - (1 - f)^(S t / 3600)

Rolling back to a save every n steps takes ((1 - q)^-n - 1) / q steps for every n: all of them must go well in a row.
Computing each stage also on its neighbour loses nothing and takes a second forward pass in every step [bamboo-2023].
Making the stage from its neighbours sets training back by k steps, which is measured: N / (1 - q k) steps for N
[checkfree-2025].
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.training.faults.model import check_fracs, check_not_negative, check_positive

Floats = NDArray[np.float64]
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFaults:
    """Stages that may be lost, and how often each is."""

    num_stages: int
    hourly_failure_frac: float  # probability that a stage is lost within an hour
    replace_s: float = 0.0  # until another node stands in

    def __post_init__(self) -> None:
        check_positive(self, "num_stages")
        check_fracs(hourly_failure_frac=self.hourly_failure_frac)
        check_not_negative(self, "replace_s")

    def step_failure_frac(self, step_s: float) -> float:
        """That a step loses a stage."""
        return 1.0 - (1.0 - self.hourly_failure_frac) ** (self.num_stages * step_s / HOUR_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Steps computed until the work of ``num_steps`` good ones is done, failures on the way, and time."""

    steps: float
    step_s: float
    num_failures: float
    time_s: float


def rolled_back(
    faults: StageFaults, num_steps: int, step_s: float, interval_steps: int, *, save_s: float = 0.0
) -> Outcome:
    """Back to the last save after every loss; the step that a loss strikes is lost with the rest."""
    q = faults.step_failure_frac(step_s)
    if q == 0.0:
        return _outcome(faults, float(num_steps), step_s, 0.0, save_s * (num_steps // interval_steps))
    if q >= 1.0 or -interval_steps * math.log1p(-q) > 300.0:
        raise OutOfRange(f"rolled_back: hardly ever {interval_steps} steps in a row go well; save more often.")
    whole, rest = divmod(num_steps, interval_steps)
    steps = failures = 0.0
    for count, row in ((whole, interval_steps), (1 if rest else 0, rest)):
        tries = math.expm1(-row * math.log1p(-q))
        steps, failures = steps + count * tries / q, failures + count * tries
    return _outcome(faults, steps, step_s, failures, save_s * whole)


def computed_twice(
    faults: StageFaults, num_steps: int, step_s: float, *, forward_frac: float = 1.0 / 3.0, step_ratio: float = 0.0
) -> Outcome:
    """No step is lost; each has a second forward pass (a third of one forward and two backward).

    ``step_ratio``: how much longer a step was measured to be, instead of ``forward_frac``.
    """
    check_fracs(forward_frac=forward_frac)
    longer_s = step_s * (step_ratio or 1.0 + forward_frac)
    return _outcome(faults, float(num_steps), longer_s, num_steps * faults.step_failure_frac(longer_s), 0.0)


def from_neighbours(
    faults: StageFaults, num_steps: int, step_s: float, setback_steps: float, *, steps_ratio: float = 1.0
) -> Outcome:
    """Each loss sets back by ``setback_steps``; ``steps_ratio``: more good steps that the way itself asks for."""
    q = faults.step_failure_frac(step_s)
    if q * setback_steps >= 1.0:
        raise OutOfRange(
            f"from_neighbours: {q * setback_steps:.2g} steps of setback come with every step; training stands still."
        )
    steps = num_steps * steps_ratio / (1.0 - q * setback_steps)
    return _outcome(faults, steps, step_s, steps * q, 0.0)


def _outcome(faults: StageFaults, steps: float, step_s: float, failures: float, saving_s: float) -> Outcome:
    time_s = steps * step_s + failures * faults.replace_s + saving_s
    return Outcome(steps=steps, step_s=step_s, num_failures=failures, time_s=time_s)
