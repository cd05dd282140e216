"""Erasure codes on real bytes: parity that brings back what lost nodes held.

XOR of k equal pieces brings back any one of them. Reed-Solomon [reed-solomon-1960] makes m parities of k pieces over
the field of 256 elements, p_i = sum_j c_ij d_j, and any k of the k + m pieces give the data back, because every square
part of a Cauchy matrix c_ij = 1 / (x_i + y_j) can be inverted [blomer-1995]. Rows and columns are scaled so that the
first parity is the plain XOR, as in RAID 6.

A product with a constant is one look-up in a row of 256, so coding a piece costs k m look-ups a byte.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, ScenarioError

Bytes = NDArray[np.uint8]
POLYNOMIAL = 0x11D
"""x^8 + x^4 + x^3 + x^2 + 1: primitive, so that 2 generates every element but 0."""

FIELD = 256


def _tables() -> tuple[Bytes, Bytes]:
    """Products of any two elements, and inverses."""
    power, log = np.zeros(2 * FIELD, dtype=np.int64), np.zeros(FIELD, dtype=np.int64)
    value = 1
    for exponent in range(FIELD - 1):
        power[exponent], log[value] = value, exponent
        value = (value << 1) ^ (POLYNOMIAL if value & 0x80 else 0)
    power[FIELD - 1 : 2 * FIELD - 2] = power[: FIELD - 1]
    product = power[log[:, None] + log[None, :]]
    product[0, :] = product[:, 0] = 0
    inverse = power[(FIELD - 1 - log) % (FIELD - 1)]
    inverse[0] = 0
    return product.astype(np.uint8), inverse.astype(np.uint8)


PRODUCT, INVERSE = _tables()


def code_matrix(num_data: int, num_parity: int) -> Bytes:
    """(m, k) weights of the parities: a Cauchy matrix whose first row and first column are ones."""
    if num_data < 1 or num_parity < 0 or num_data + num_parity > FIELD:
        raise ScenarioError(
            f"code: got {num_data} data and {num_parity} parity pieces; write at least 1 data, at most {FIELD} in all."
        )
    rows, columns = np.arange(num_parity), np.arange(num_parity, num_parity + num_data)
    cauchy = INVERSE[rows[:, None] ^ columns[None, :]]
    if num_parity == 0:
        return cauchy
    cauchy = PRODUCT[cauchy, INVERSE[cauchy[:1]]]
    return PRODUCT[cauchy, INVERSE[cauchy[:, :1]]]


def encode(data: Bytes, num_parity: int) -> Bytes:
    """(k, n) data to (m, n) parity."""
    return _times(code_matrix(data.shape[0], num_parity), data)


def decode(pieces: Mapping[int, Bytes], num_data: int, num_parity: int) -> Bytes:
    """(k, n) data from any k pieces by their place: 0 to k - 1 are data, the rest parity.

    Only what is missing is computed. With fewer than k pieces nothing can be said of it.
    """
    if len(pieces) < num_data:
        raise OutOfRange(f"decode: {len(pieces)} pieces are left and {num_data} are needed; read the save on disk.")
    lost = [j for j in range(num_data) if j not in pieces]
    size = next(iter(pieces.values())).size
    data = np.zeros((num_data, size), dtype=np.uint8)
    for j in range(num_data):
        if j in pieces:
            data[j] = pieces[j]
    if not lost:
        return data
    parities = [i for i in sorted(pieces) if i >= num_data][: len(lost)]
    weights = code_matrix(num_data, num_parity)[[i - num_data for i in parities]]
    known = np.stack([pieces[i] for i in parities]) ^ _times(weights, data)
    data[lost] = _times(_inverted(weights[:, lost]), known)
    return data


def _times(weights: Bytes, pieces: Bytes) -> Bytes:
    """(m, k) by (k, n) over the field."""
    out = np.zeros((weights.shape[0], pieces.shape[1]), dtype=np.uint8)
    for i, row in enumerate(weights):
        for weight, piece in zip(row, pieces, strict=True):
            out[i] ^= PRODUCT[weight][piece]
    return out


def _inverted(square: Bytes) -> Bytes:
    """Gauss and Jordan over the field, where adding is XOR and every element but 0 has an inverse.

    No pivot is 0: every leading square of a part of a Cauchy matrix can be inverted as well.
    """
    size = square.shape[0]
    work = np.concatenate([square, np.eye(size, dtype=np.uint8)], axis=1)
    for column in range(size):
        work[column] = PRODUCT[INVERSE[work[column, column]]][work[column]]
        for row in range(size):
            if row != column:
                work[row] ^= PRODUCT[work[row, column]][work[column]]
    return work[:, size:]
