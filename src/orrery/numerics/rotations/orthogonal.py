"""Orthogonal matrices: drawn evenly at random, and a step along them that stays orthogonal."""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def random_orthogonal(size: int, seed: int | np.random.Generator) -> Matrix:
    """An orthogonal matrix, all equally likely (Haar): Q of a Gaussian matrix, the diagonal of R made positive.

    The signs matter: without them the factorisation favours some rotations (F. Mezzadri, "How to generate random
    matrices from the classical compact groups", 2007).
    """
    return nearest_by_qr(np.random.default_rng(seed).standard_normal((size, size)))


def nearest_by_qr(near: Matrix) -> Matrix:
    """An orthogonal matrix close to ``near``: the retraction by QR, which leaves orthogonal matrices as they are."""
    q, r = np.linalg.qr(near)
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def tangent(rotation: Matrix, gradient: Matrix) -> Matrix:
    """The part of a gradient that turns ``rotation`` and does not stretch it: R (R^T G - G^T R) / 2."""
    turn = rotation.T @ gradient
    return rotation @ (turn - turn.T) / 2.0
