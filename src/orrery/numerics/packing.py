"""Codes of less than a byte, packed without gaps: the first code in the lowest bits of the first byte."""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, ScenarioError


def pack(codes: NDArray[np.unsignedinteger], bits: int) -> NDArray[np.uint8]:
    """``codes`` of ``bits`` each as a stream of ceil(bits size / 8) bytes; the last byte is filled with zeros."""
    _check(bits)
    flat = np.ascontiguousarray(codes).reshape(-1)
    if flat.size and int(flat.max()) >> bits:
        raise ScenarioError(f"A code of {bits} bits is at most {(1 << bits) - 1}; got {int(flat.max())}.")
    if bits in (8, 16, 32):
        return flat.astype(f"<u{bits // 8}").view(np.uint8)
    planes = (flat[:, None].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)
    return np.packbits(planes.astype(np.uint8).reshape(-1), bitorder="little")


def unpack(stream: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.uint32]:
    """The first ``count`` codes of a stream."""
    _check(bits)
    if count * bits > stream.size * 8:
        raise ScenarioError(f"{count} codes of {bits} bits need {-(-count * bits // 8)} bytes; got {stream.size}.")
    planes = np.unpackbits(stream, count=count * bits, bitorder="little").reshape(count, bits)
    return (planes.astype(np.uint32) << np.arange(bits, dtype=np.uint32)).sum(axis=1, dtype=np.uint32)


def _check(bits: int) -> None:
    if not 1 <= bits <= 32:
        raise OutOfRange(f"A code has 1 to 32 bits, got {bits}.")
