"""Choice of the next measurement, and the posterior after it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.base.posterior import Posterior, most_telling, settle
from orrery.calibrate.device.unknowns import FitParameters, Key
from orrery.calibrate.device.work import Work
from orrery.calibrate.measure.clock import Timed
from orrery.hardware.calibration import Calibration

Floats = NDArray[np.float64]

MIN_NOISE = 0.03
"""Relative noise of a timing that repeats itself perfectly: the same call an hour later is not closer than that."""

EXPECTED_MISFIT_ROWS = 5.0
"""The law's own error counts as much as so many measurements of this machine when its size is told from both."""

Z_80, Z_95 = 1.2816, 1.9600
"""Normal quantiles of the two intervals."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """One measurement beside what was foreseen just before it."""

    work: Work
    timed: Timed
    slowness_ratio: float  # how much slower than quiet the machine was meanwhile
    foreseen_s: float
    foreseen_spread_frac: float  # one sigma of the log


@dataclass(slots=True, eq=False)
class Search:
    """Measurements so far, and what they leave unknown of the constants."""

    unknowns: FitParameters
    pool: Sequence[Work]
    measured: list[Measured] = field(default_factory=list[Measured])
    believed: Posterior = field(init=False)
    _done: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.believed = self.unknowns.prior

    def next(self) -> Work | None:
        """The work after whose measurement the pool's predictions are least uncertain; None once all is measured."""
        left = [i for i in range(len(self.pool)) if i not in self._done]
        if not left:
            return None
        _, slopes = self.unknowns.predict(self.pool, self.believed.mean)
        weight = np.sqrt([work.weight_frac for work in self.pool])[:, None]
        noise = np.array([np.hypot(self.misfit(self.pool[i].key), MIN_NOISE) for i in left])
        best, _ = most_telling(self.believed, slopes[left], slopes * weight, noise)
        return self.pool[left[best]]

    def skip(self, work: Work) -> None:
        """Leave out what this machine cannot do."""
        self._done |= {i for i, other in enumerate(self.pool) if other is work}

    def add(self, work: Work, timed: Timed, slowness_ratio: float = 1.0) -> Measured:
        """Learn from one measurement; what was foreseen is written down first."""
        foreseen, slopes = self.unknowns.predict([work], self.believed.mean)
        variance = float(self.believed.variance_of(slopes)[0]) + self.misfit(work.key) ** 2
        found = Measured(
            work=work,
            timed=timed,
            slowness_ratio=slowness_ratio,
            foreseen_s=float(foreseen[0]),
            foreseen_spread_frac=float(np.sqrt(variance)),
        )
        self.skip(work)
        self.measured.append(found)
        works, time_s = [m.work for m in self.measured], np.array([m.timed.time_s for m in self.measured])

        def errors(x: Floats) -> tuple[Floats, Floats]:
            predicted, slopes = self.unknowns.predict(works, x)
            return np.log(predicted / time_s), slopes

        self.believed = settle(errors, self.unknowns.prior, self._noise(), self.believed.mean)
        return found

    def _noise(self) -> Floats:
        """One sigma (log) per measurement: the law's error, the machine's unrest meanwhile, and the timing's own."""
        law = np.array([self.misfit(m.work.key) for m in self.measured])
        own = np.array([m.timed.spread_frac / np.sqrt(max(1, m.timed.num_samples)) for m in self.measured])
        unrest = np.log([m.slowness_ratio for m in self.measured])
        return np.hypot(np.hypot(law, unrest), np.maximum(own, MIN_NOISE))

    def misfit(self, key: Key) -> float:
        """The law's own error (one sigma, log) on machines that it was fitted to."""
        spread = self.unknowns.device.calibrations[key].spread
        return float(np.log(spread.high_80_ratio / spread.low_80_ratio) / (2 * Z_80))

    def uncertainty(self) -> float:
        """One sigma (log) of a prediction of the pool, on the average, the law's own error included."""
        _, slopes = self.unknowns.predict(self.pool, self.believed.mean)
        law = np.array([self.misfit(work.key) for work in self.pool])
        return float(np.sqrt(np.mean(self.believed.variance_of(slopes) + law**2)))

    def calibrations(self, widen_ratio: float, because: str) -> dict[Key, Calibration]:
        """The constants as believed now, each op with the interval of its predictions.

        Variance of a prediction = what the constants leave open (mean over the pool) + the law's error, which is told
        from what it was elsewhere and from what is left over here. Both ends move out by ``widen_ratio``, the machine's
        unrest.
        """
        found = self.unknowns.calibrations(self.believed.mean)
        return {k: replace(c, spread=self._spread(k, widen_ratio, because)) for k, c in found.items()}

    def _spread(self, key: Key, widen_ratio: float, because: str) -> Spread:
        members = [work for work in self.pool if work.key == key]
        _, slopes = self.unknowns.predict(members, self.believed.mean)
        mine = [m for m in self.measured if m.work.key == key]
        predicted, _ = self.unknowns.predict([m.work for m in mine], self.believed.mean)
        left = np.log(predicted / np.array([m.timed.time_s for m in mine]))
        law = (EXPECTED_MISFIT_ROWS * self.misfit(key) ** 2 + np.sum(left**2)) / (EXPECTED_MISFIT_ROWS + len(mine))
        sigma = float(np.sqrt(np.mean(self.believed.variance_of(slopes)) + law))
        wide_80, wide_95 = (float(np.exp(z * sigma)) * widen_ratio for z in (Z_80, Z_95))
        return Spread(
            low_80_ratio=1 / wide_80,
            high_80_ratio=wide_80,
            low_95_ratio=1 / wide_95,
            high_95_ratio=wide_95,
            because=because,
        )
