"""Hadamard matrices and the fast transform by them: a rotation whose entries are all equal in size.

H H^T = I with entries +-1 / sqrt(n). A matrix of order n = m 2^k is the Kronecker product of a core of order m with k
Sylvester steps [[1, 1], [1, -1]]. Cores are Paley's (R. Paley, "On orthogonal matrices", 1933): from the quadratic
residues modulo a prime q, of order q + 1 where q = 3 (mod 4), which gives 12 and 20, and of order 2 (q + 1) where q =
1 (mod 4), which gives 28 and 36. The transform multiplies by one factor at a time and never forms the whole matrix.
Every value of a rotated vector is a sum over all n, which makes outliers small and tails light (QuaRot, arXiv
2404.00456; QuIP#, arXiv 2402.04396).
"""

from functools import cache, reduce
from math import isqrt, prod

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.floating]
Matrix = NDArray[np.float64]

PAIR = np.array([[1.0, 1.0], [1.0, -1.0]])
"""Sylvester's step: the sum and the difference of two elements."""

RADIX = 64
"""The widest factor that the transform multiplies by at once: one matrix product, still cheap for each element."""


def transform(x: Floats, block: int | None = None) -> Floats:
    """``x H`` along the last axis, each run of ``block`` elements by itself; the whole axis where none is given."""
    return _by_factors(x, block, is_inverse=False)


def inverse(x: Floats, block: int | None = None) -> Floats:
    """``x H^T`` along the last axis: undoes ``transform``."""
    return _by_factors(x, block, is_inverse=True)


def signs(size: int, seed: int | np.random.Generator) -> NDArray[np.float32]:
    """Random +1 and -1: ``transform(x * signs)`` is the random Hadamard rotation, different for every seed."""
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0], dtype=np.float32), size)


def matrix(size: int) -> Matrix:
    """The orthonormal Hadamard matrix that ``transform`` multiplies by."""
    return reduce(_kron, _factors(size))


def has_matrix(size: int) -> bool:
    """Whether a Hadamard matrix of this order is known here."""
    return _core_order(size) is not None


def _by_factors(x: Floats, block: int | None, *, is_inverse: bool) -> Floats:
    """``x`` times a Kronecker product, one factor and one axis at a time."""
    width = x.shape[-1] if block is None else block
    if width < 1 or x.shape[-1] % width:
        raise ScenarioError(f"block = {width} for rows of {x.shape[-1]} elements; write a divisor of the row.")
    dtype = np.float32 if x.dtype == np.float32 else np.float64
    factors = [f.T if is_inverse else f for f in _factors(width)]
    y = np.asarray(x, dtype=dtype)
    for i, factor in enumerate(factors):
        after = prod(len(f) for f in factors[i + 1 :])
        f = factor.astype(dtype)
        y = y.reshape(-1, len(f)) @ f if after == 1 else f.T @ y.reshape(-1, len(f), after)
    return y.reshape(x.shape)


@cache
def _factors(size: int) -> tuple[Matrix, ...]:
    """Orthonormal matrices whose Kronecker product is the Hadamard matrix of order ``size``."""
    if (core := _core_order(size)) is None:
        raise ScenarioError(
            f"No Hadamard matrix of order {size} is known here; write a power of two, or 12, 20, 28 or 36 times one."
        )
    factors = [] if core == 1 else [_paley(core) / np.sqrt(core)]
    left = size // core
    while left > 1:
        factors.append(_sylvester(min(left, RADIX)))
        left //= len(factors[-1])
    return tuple(factors) or (np.ones((1, 1)),)


def _core_order(size: int) -> int | None:
    """The smallest order m with ``size`` = m 2^k that is 1 or Paley's; None where there is none."""
    if size < 1:
        return None
    order = size // (size & -size)
    while order <= size:
        if order == 1 or _residue_order(order) is not None:
            return order
        order *= 2
    return None


def _residue_order(order: int) -> int | None:
    """The prime q behind Paley's matrix of this order, of the first kind or the second."""
    if order % 4 == 0 and _is_prime(order - 1):
        return order - 1
    if order % 4 == 0 and (order // 2 - 1) % 4 == 1 and _is_prime(order // 2 - 1):
        return order // 2 - 1
    return None


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, isqrt(n) + 1))


def _sylvester(size: int) -> Matrix:
    """Sylvester's matrix of a power of two, orthonormal."""
    return reduce(_kron, [PAIR] * (size.bit_length() - 1)) / np.sqrt(size)


def _kron(a: Matrix, b: Matrix) -> Matrix:
    return np.asarray(np.kron(a, b), dtype=np.float64)


def _paley(order: int) -> Matrix:
    """Paley's matrix of +1 and -1, from S, the matrix of quadratic characters bordered by ones."""
    q = _residue_order(order)
    assert q is not None
    character = np.full(q, -1.0)
    character[np.arange(1, q) ** 2 % q] = 1.0
    character[0] = 0.0
    i = np.arange(q)
    bordered = np.zeros((q + 1, q + 1))
    bordered[1:, 1:] = character[(i[:, None] - i) % q]
    bordered[0, 1:] = 1.0
    bordered[1:, 0] = -1.0 if q % 4 == 3 else 1.0
    if q % 4 == 3:
        return bordered + np.eye(q + 1)
    return _kron(bordered, PAIR) + _kron(np.eye(q + 1), np.array([[1.0, -1.0], [-1.0, -1.0]]))
