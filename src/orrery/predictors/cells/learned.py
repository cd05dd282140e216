"""The extension point of latency predictors: what is known of a machine, and rules that predict other networks from it.

A rule first prepares what needs no measurement of the machine in question (``rule``), then fits
samples of it, and answers with a function of networks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orrery.predictors.cells.latency import Floats, Machine, Plan
from orrery.predictors.cells.space import Cells

Predictor = Callable[[Cells], Floats]
"""Seconds that networks take."""

OnStep = Callable[[], None]
"""Called for every optimizer step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Networks timed on a machine, and what a rule may know of it besides."""

    cells: Cells
    latency_s: Floats
    nominal: Machine  # what the kernel rules say from the data sheet alone
    alone_s: Floats  # every block, timed while it alone is repeated

    @property
    def plan(self) -> Plan:
        """The space and its blocks."""
        return self.nominal.plan


Fit = Callable[[Samples], Predictor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A machine that can be timed: true latencies, and lognormal noise on every timing."""

    truth: Machine
    nominal: Machine
    noise_frac: float

    def samples(self, cells: Cells, rng: np.random.Generator) -> Samples:
        """Timings of networks, and of every block alone."""
        return Samples(
            cells=cells,
            latency_s=self._timed(self.truth.latency_s(cells), rng),
            nominal=self.nominal,
            alone_s=self._timed(self.truth.alone_s(), rng),
        )

    def _timed(self, true_s: Floats, rng: np.random.Generator) -> Floats:
        return true_s * np.exp(self.noise_frac * rng.standard_normal(true_s.shape))


def ignore() -> None:
    """Nobody counts the steps."""
