"""Error range of a rule by row: narrow where measurements agree with it, wide where not.

    truth / prediction at a quantile = exp(level x scale(row))

Trees tell the scale of every row, and the levels are quantiles of log(measured / predicted) / scale on rows that
taught neither the rule nor, fold by fold, the trees: conformal prediction with a local scale (Lei and others,
"Distribution-free predictive inference for regression", 2018, locally weighted, as recalled). Beyond the sizes that
were measured, within a factor of 2, the interval becomes the one that all rows share.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.hardware.calibration import Calibration, RowSpread
from orrery.hardware.device import Device
from orrery.kernels.ops import Op, Timing
from orrery.kernels.residual._kernel import faded, total
from orrery.kernels.residual.terms import names_of, terms

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spreads:
    """A ``Spread`` for every row: truth / prediction at four quantiles, arrays of the op's broadcast shape."""

    low_80_ratio: Floats
    high_80_ratio: Floats
    low_95_ratio: Floats
    high_95_ratio: Floats
    because: str = ""

    def only(self) -> Spread:
        """The spread of a single row."""
        ratios = (self.low_80_ratio, self.high_80_ratio, self.low_95_ratio, self.high_95_ratio)
        low_80, high_80, low_95, high_95 = (float(ratio.item()) for ratio in ratios)
        return Spread(
            low_80_ratio=low_80,
            high_80_ratio=high_80,
            low_95_ratio=low_95,
            high_95_ratio=high_95,
            because=self.because,
        )


def spreads(op: Op, timing: Timing, device: Device, found: Calibration) -> Spreads | None:
    """The spread of every row of ``op``; None where ``found`` states one for all rows."""
    known = found.row_spread()
    if known is None or known.trees.names != names_of(type(op)):
        return None
    shape = np.shape(timing.time_s)
    scale = scales(terms(op, timing, device.last_level_cache_bytes), known)
    near = np.ones(scale.size)
    for name in (n for n in found.range if hasattr(op, n)):
        size = np.broadcast_to(np.asarray(getattr(op, name), dtype=np.float64), shape)
        faded(np.ravel(size), *found.range[name], near)
    return around(known, scale, near, shape, found.spread)


def around(known: RowSpread, scale: Floats, near: Floats, shape: tuple[int, ...], everywhere: Spread) -> Spreads:
    """The levels at every row's scale where ``near`` is 1, the spread of ``everywhere`` where it is 0."""
    edges = (everywhere.low_80_ratio, everywhere.high_80_ratio, everywhere.low_95_ratio, everywhere.high_95_ratio)
    low_80, high_80, low_95, high_95 = (
        np.exp(near * level * scale + (1.0 - near) * np.log(edge)).reshape(shape)
        for level, edge in zip(known.levels, edges, strict=True)
    )
    return Spreads(
        low_80_ratio=low_80,
        high_80_ratio=high_80,
        low_95_ratio=low_95,
        high_95_ratio=high_95,
        because=everywhere.because,
    )


def scales(features: Floats, known: RowSpread) -> Floats:
    """The local scale of every row of ``features``."""
    trees, out = known.trees, np.empty(len(features))
    total(features, trees.roots, trees.depths, trees.feature, trees.threshold, trees.low, trees.value, out)
    return np.exp(out, out=out)
