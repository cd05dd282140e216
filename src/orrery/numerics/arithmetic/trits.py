"""Ternary codes, five to a byte: 3^5 = 243 of 256 values, 1.6 bits a digit where two bits would hold each alone."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

TRITS_PER_BYTE = 5

_PLACES: NDArray[np.int64] = 3 ** np.arange(TRITS_PER_BYTE, dtype=np.int64)


def pack_trits(codes: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Digits 0, 1, 2 as bytes of five, the first in the lowest place; the last byte is filled with zeros."""
    if codes.size and not 0 <= codes.min() <= codes.max() <= 2:
        raise ScenarioError(f"trits: codes {codes.min()} to {codes.max()}; write 0, 1 and 2.")
    flat = codes.ravel()
    padded = np.zeros(ceil(flat.size / TRITS_PER_BYTE) * TRITS_PER_BYTE, dtype=np.int64)
    padded[: flat.size] = flat
    return (padded.reshape(-1, TRITS_PER_BYTE) @ _PLACES).astype(np.uint8)


def unpack_trits(packed: NDArray[np.uint8], count: int) -> NDArray[np.int64]:
    """The first ``count`` digits of what ``pack_trits`` made."""
    if count > packed.size * TRITS_PER_BYTE:
        raise ScenarioError(f"trits: {count} digits need {ceil(count / TRITS_PER_BYTE)} bytes; got {packed.size}.")
    digits = packed.astype(np.int64).reshape(-1, 1) // _PLACES % 3
    return digits.ravel()[:count]
