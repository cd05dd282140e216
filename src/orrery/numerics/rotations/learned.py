"""A rotation learned so that rotated vectors have light tails: kurtosis minimised over orthogonal matrices.

Rows scaled to a root mean square of 1 keep it under any rotation, so that kurtosis about zero is the mean fourth
power of Y = X R, whose gradient is 4 X^T Y^3 over the number of elements. Every step goes along the part of the
gradient that turns, with momentum, and back onto the orthogonal matrices by QR. Below the kurtosis of the even
spread, 1.8, where a grid of even steps is used best, the sign turns: lighter tails would pile values up at the two
ends. Steps follow some of the rows; the others say which of the rotations on the way is kept, so that tails that no
rotation can foresee are not learnt by heart. (KurTail, arXiv 2503.01483, names the aim; the Cayley step of SpinQuant,
arXiv 2405.16406, is another way to stay orthogonal.)
"""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.rotations.hadamard import has_matrix, matrix, signs
from orrery.numerics.rotations.orthogonal import Matrix, nearest_by_qr, random_orthogonal, tangent

EVEN_KURTOSIS = 1.8
"""Kurtosis of numbers spread evenly between two ends."""

MOMENTUM_FRAC = 0.9
"""How much of the last step's direction is kept."""

JUDGES = 4
"""One row in so many takes no part in the steps and judges them."""


def lighter_tails(
    x: NDArray[np.floating], *, num_steps: int, turn_ratio: float, seed: int | np.random.Generator
) -> Matrix:
    """The rotation of (samples, size) rows after so many steps from a random Hadamard or orthogonal matrix.

    ``turn_ratio`` is how far all columns turn at first, arc over radius, falling to zero in a straight line.
    """
    rng = np.random.default_rng(seed)
    rows = _unit_rows(x)
    size, judges = rows.shape[1], rows[::JUDGES]
    taught = np.delete(rows, np.s_[::JUDGES], axis=0) if len(rows) > 1 else rows
    rotation = matrix(size) * signs(size, rng)[:, None] if has_matrix(size) else random_orthogonal(size, rng)
    best, least = rotation, _excess(judges @ rotation)
    direction = np.zeros_like(rotation)
    for i in range(num_steps):
        direction = tangent(rotation, MOMENTUM_FRAC * direction + _gradient(taught, rotation))
        if not (length := float(np.linalg.norm(direction))):
            break
        angle = turn_ratio * (1.0 - i / num_steps) * np.sqrt(size) / length
        rotation = nearest_by_qr(rotation - angle * direction)
        if (excess := _excess(judges @ rotation)) < least:
            best, least = rotation, excess
    return best


def _unit_rows(x: NDArray[np.floating]) -> Matrix:
    """Rows of root mean square 1, without those that are zero."""
    exact = np.asarray(x, dtype=np.float64)
    rms = np.sqrt((exact * exact).mean(axis=1, keepdims=True))
    if not (rms > 0).any():
        raise ScenarioError("A rotation is learned from activations that are all zero; write some that are not.")
    return exact[rms[:, 0] > 0] / rms[rms[:, 0] > 0]


def _excess(rotated: Matrix) -> float:
    """Distance of the mean kurtosis of rows of root mean square 1 from that of the even spread."""
    return abs(float((rotated**4).mean()) - EVEN_KURTOSIS)


def _gradient(rows: Matrix, rotation: Matrix) -> Matrix:
    """Gradient of that distance with respect to the rotation."""
    rotated = rows @ rotation
    cubes = rotated**3
    is_heavy = float((cubes * rotated).mean()) > EVEN_KURTOSIS
    return (4.0 if is_heavy else -4.0) / rows.size * (rows.T @ cubes)
