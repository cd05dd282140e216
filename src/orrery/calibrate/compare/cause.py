"""A cause of slowness: a change to what was run, with one severity, and what to look at on the machine.

A cause is one short file in ``causes`` that ends with ``CAUSE = Cause(...)``. Its change goes through the same
prediction as everything else; nothing here multiplies an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.calibrate.compare.run import Run, ServingRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A possible cause of a slow run: its effect on each metric, and how to confirm it."""

    name: str  # as in the answer: "slow-memory"
    title: str  # a sentence's subject: "memory slower than the data sheet's"
    ladder: Callable[[Sequence[Run]], Sequence[float]]  # severities to try, mildest first; none: it cannot be
    change: Callable[[Run, float], Run | None]  # None where it cannot show in this run
    describe: Callable[[Run, float], str]  # the severity in words and units
    shows: str  # the pattern that speaks for it
    hides: str  # when it leaves no trace: what would speak against it, or excludes it
    checks: tuple[str, ...]  # commands and settings to look at
    is_stepwise: bool = False  # only the severities of the ladder exist
    is_whole: bool = False  # severities are counts


def between(first: float, last: float, nodes: int = 5) -> Callable[[Sequence[Run]], Sequence[float]]:
    """A ladder of equal ratios, the same for all runs."""
    values = tuple(float(v) for v in np.geomspace(first, last, nodes))
    return lambda runs: values


def only_serving(run: Run) -> ServingRun | None:
    """The run if it serves."""
    return run if isinstance(run, ServingRun) else None
