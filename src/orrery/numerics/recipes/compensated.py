"""Error-compensated rounding (GPTQ): what one column loses, the columns not yet rounded make up for.

For H = XᵀX with a little of its mean diagonal added, and U the upper Cholesky factor of H⁻¹ = UᵀU, columns are rounded
in order, and each column's error, (w_j - ŵ_j) / U_jj, times row j of U is taken from all columns after it. That is the
least-squares answer to the question which change of the later columns best repairs the output. [Frantar et al. 2022,
GPTQ, section 3: one order for all rows, updates in lazy batches, the Cholesky form.]

Scales are settled before the first column is rounded and stay: what the GPTQ code calls static groups, so columns may
be taken in any order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_above, check_range
from orrery.numerics.recipes.grid import Fitted, Floats

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """Order in which the columns are quantised.

    ``damping_frac`` of H's mean diagonal is added to it; ``is_act_order`` takes the columns with the largest inputs
    first; ``block_columns`` is how many are rounded before the rest is updated, which changes the time and not the
    result.
    """

    damping_frac: float = 0.01
    is_act_order: bool = False
    block_columns: int = 128

    def __post_init__(self) -> None:
        check_above(self, "damping_frac", 0.0)
        check_range(self, "block_columns", 1, 65536)


def round_compensated(weights: Floats, grid: Fitted, inputs: Floats, how: Compensation) -> Floats:
    """The weights (out, in) on their grid, each column's error spread over the columns after it."""
    hessian = _hessian(inputs, how.damping_frac)
    order = np.arange(weights.shape[1], dtype=np.intp)
    if how.is_act_order:
        order = np.argsort(-np.diag(hessian), kind="stable").astype(np.intp)
        hessian = hessian[np.ix_(order, order)]
    upper = np.asarray(np.linalg.cholesky(np.linalg.inv(hessian)).T, dtype=np.float64)
    rounded = _in_order(weights[:, order].astype(np.float64), grid.columns(order), upper, how.block_columns)
    found = np.empty(weights.shape, dtype=np.float32)
    found[:, order] = rounded
    return found


def _hessian(inputs: Floats, damping_frac: float) -> Doubles:
    """XᵀX, damped; a channel that never carries anything gets a diagonal of one, so that nothing is passed to it."""
    x = inputs.astype(np.float64)
    hessian: Doubles = x.T @ x
    diagonal = np.diag(hessian).copy()
    np.fill_diagonal(hessian, np.where(diagonal > 0, diagonal + damping_frac * diagonal.mean(), 1.0))
    return hessian


def _in_order(weights: Doubles, grid: Fitted, upper: Doubles, block_columns: int) -> Floats:
    """Columns from left to right; those beyond the present block are updated once a block, in one product."""
    width = weights.shape[1]
    rounded = np.empty(weights.shape, dtype=np.float32)
    for first in range(0, width, block_columns):
        last = min(first + block_columns, width)
        errors = np.empty((len(weights), last - first))
        for j in range(first, last):
            rounded[:, j] = grid.columns(slice(j, j + 1)).round(weights[:, j : j + 1])[:, 0]
            errors[:, j - first] = (weights[:, j] - rounded[:, j]) / upper[j, j]
            weights[:, j + 1 : last] -= np.outer(errors[:, j - first], upper[j, j + 1 : last])
        weights[:, last:] -= errors @ upper[first:last, last:]
    return rounded
