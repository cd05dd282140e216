"""Losses with their slopes, and how sharply a loss rises around the logits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.experiments.steps import softmax
from orrery.numerics.learning.linear import Array

Targets = NDArray[Any]


def squared_error(y: Array, targets: Targets) -> tuple[float, Array]:
    """The mean of (y - t)^2, and its gradient."""
    off = y - targets
    return float(np.mean(off * off)), 2.0 * off / off.size


def cross_entropy(logits: Array, targets: Targets) -> tuple[float, Array]:
    """The mean of ``log sum exp z - z_t`` over all places, and its gradient ``(softmax(z) - 1_t) / places``."""
    flat, target_values = _by_place(logits, targets)
    shares = softmax(flat)
    gradient = shares.copy()
    gradient[np.arange(len(flat)), target_values] -= 1.0
    return _cross_entropy(flat, target_values), (gradient / len(flat)).reshape(logits.shape)


def sharpness_frac(logits: Array, targets: Targets, reach: float = 5e-4) -> float:
    """The most that the loss can rise within a small box around the logits, over one plus the loss.

        max over |d_i| <= reach (1 + |z_i|) of (L(z + d) - L(z)) / (1 + L(z))

    Cross-entropy falls with the target's logit and rises with every other, so the maximum is the corner of the box.
    The box is that of [keskar-2017], which perturbs weights; perturbing logits instead follows [lee-2024-fp8-and-back].
    """
    flat, target_values = _by_place(logits, targets)
    sign = np.ones_like(flat)
    sign[np.arange(len(flat)), target_values] = -1.0
    here = _cross_entropy(flat, target_values)
    return (_cross_entropy(flat + sign * reach * (1.0 + np.abs(flat)), target_values) - here) / (1.0 + here)


def _by_place(logits: Array, targets: Targets) -> tuple[Array, NDArray[np.intp]]:
    return logits.reshape(-1, logits.shape[-1]), targets.reshape(-1).astype(np.intp)


def _cross_entropy(flat: Array, targets: NDArray[np.intp]) -> float:
    wide = flat.astype(np.float64)
    top = wide.max(axis=-1)
    sums: NDArray[np.float64] = np.exp(wide - top[:, None]).sum(axis=-1)
    surprise: NDArray[np.float64] = top + np.log(sums) - wide[np.arange(len(wide)), targets]
    return float(surprise.mean())
