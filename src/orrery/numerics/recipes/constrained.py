"""Grids whose scales are powers of two apart, so that values of one scale become another's by moving the exponent."""

from dataclasses import dataclass

import numpy as np

from orrery.numerics.recipes.grid import Around, Fitted, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PowersOfTwo(Around):
    """Another grid with its scales constrained; each goes up to the next one allowed, so that nothing saturates.

    M1: 2^ceil(log2 S). M2, ``is_relative``: S_max / 2^floor(log2(S_max / S)), with S_max the largest scale of a row,
    which itself is kept as it is. [Wu et al. 2023, ZeroQuant-FP, section 3, as recalled: the direction of M2's
    rounding is read as M1's]
    """

    is_relative: bool

    def fit(self, values: Floats, clip_ratio: float = 1.0) -> Fitted:
        """The other grid's scales, each rounded up."""
        fitted = self.grid.fit(values, clip_ratio)
        scale = fitted.scale.astype(np.float64)
        if not self.is_relative:
            return fitted.with_scale(np.exp2(np.ceil(np.log2(scale))))
        most = scale.max(axis=-1, keepdims=True)
        return fitted.with_scale(most / np.exp2(np.floor(np.log2(most / scale))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settled(Around):
    """Another grid with its scales decided beforehand, whatever it is fitted to."""

    scale: Floats  # (rows, 1) or (1, 1)

    def fit(self, values: Floats, clip_ratio: float = 1.0) -> Fitted:
        """The scales decided, narrower by ``clip_ratio``."""
        return self.grid.fit(values).with_scale(np.broadcast_to(self.scale * clip_ratio, values.shape))
