"""Rounding onto a list of values: a number takes as many steps up as there are thresholds below it."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.codec import _kernel as loops
from orrery.numerics.element import Element, Floats, Grid
from orrery.numerics.rounding import Rounding

STRETCHES = 1 << 16
"""Stretches of FP32 numbers, by the upper half of their bits."""


def look_up(
    x: NDArray[Any], grid: Grid, out: NDArray[Any], rounding: Rounding, nan_as: float, is_coded: bool = False
) -> None:
    """The value, or the code, of the grid that every number of flat ``x`` goes to."""
    table = _entries(grid, is_coded, out.dtype)
    if x.dtype == np.float32:
        thresholds, starts = _thresholds_f32(grid, rounding)
        loops.look_up_f32(x, out, table, thresholds, starts, nan_as)
    else:
        loops.look_up_f64(x, out, table, np.ascontiguousarray(_thresholds(grid, rounding)), nan_as)


def drawn_on_grid(x: NDArray[Any], grid: Grid, chance: NDArray[Any], rounding: Rounding) -> NDArray[Any]:
    """Up with the probability of the distance from below, or with that of a coin; NaN stays."""
    values = grid.values
    low = np.clip(np.searchsorted(values, x, side="right") - 1, 0, values.size - 2)
    step = values[low + 1] - values[low]
    part = (np.clip(x, values[0], values[-1]) - values[low]) / step
    goes_up = part >= chance if rounding is Rounding.STOCHASTIC else (part == 1) | ((part > 0) & (chance > 0.5))
    return np.where(np.isnan(x), np.nan, values[low + goes_up])


def refuse_nan(x: NDArray[Any], element: Element) -> None:
    """ScenarioError where a number is NaN and the element has no code for it."""
    if not element.has_nan and np.isnan(x).any():
        raise ScenarioError(f"{element.name} has no code for NaN; remove what is not a number first.")


@lru_cache(maxsize=64)
def _entries(grid: Grid, is_coded: bool, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(grid.codes if is_coded else grid.values, dtype=dtype)


@lru_cache(maxsize=64)
def _thresholds(grid: Grid, rounding: Rounding) -> Floats:
    """Thresholds that a number must exceed, ties settled: where a tie goes up, the next number below the threshold."""
    above, below = grid.values[:-1], grid.values[1:]
    if rounding is Rounding.UP:
        return above
    if rounding is Rounding.DOWN:
        return np.nextafter(below, -np.inf)
    if rounding is Rounding.TOWARD_ZERO:
        return np.where(below > 0, np.nextafter(below, -np.inf), above)
    if rounding is Rounding.ODD:
        return np.where(grid.tie_goes_up, np.nextafter(below, -np.inf), above)  # whose upper code is even: down
    ties = {Rounding.NEAREST_AWAY: grid.thresholds >= 0, Rounding.NEAREST_ZERO: grid.thresholds < 0}
    goes_up = ties.get(rounding, grid.tie_goes_up)
    return np.where(goes_up, np.nextafter(grid.thresholds, -np.inf), grid.thresholds)


@lru_cache(maxsize=64)
def _thresholds_f32(grid: Grid, rounding: Rounding) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Thresholds rounded down to FP32, which parts FP32 numbers just the same, and how many lie below each stretch."""
    exact = _thresholds(grid, rounding)
    thresholds = exact.astype(np.float32)
    thresholds = np.where(thresholds > exact, np.nextafter(thresholds, np.float32(-np.inf)), thresholds)
    keys = (np.arange(STRETCHES, dtype=np.int64) - STRETCHES // 2) << 16
    first = np.where(keys < 0, keys ^ 0x7FFFFFFF, keys).astype(np.int32).view(np.float32)
    starts = np.searchsorted(thresholds, np.where(np.isnan(first), np.copysign(np.inf, first), first))
    return thresholds, np.append(starts, thresholds.size).astype(np.int32)
