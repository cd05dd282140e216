"""Products of integers by their digits, and by tables of sums: exact results, with the additions counted.

A product with a weight is a shifted addition for each digit of the weight that is not zero. Digits may be the bits of
two's complement, signed digits of radix four (Booth: -2 to 2, half as many places) or canonical signed digits (-1, 0,
1, no two side by side). Tables go the other way: all sums that g weights can make are built once, and each bit of the
activations of a group picks one; patterns that several activations share, and those of zeros, need no second look.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ENCODINGS = ("two's complement", "booth radix 4", "canonical signed digits")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Digits:
    """Digits of integers, least first (…, places), each standing for itself times ``base`` to its place."""

    values: Ints
    base: int

    @property
    def numbers(self) -> Ints:
        """The integers again."""
        return (self.values * self.base ** np.arange(self.values.shape[-1], dtype=np.int64)).sum(axis=-1)

    @property
    def per_number(self) -> float:
        """Digits that are not zero, in the mean."""
        return float((self.values != 0).sum(axis=-1).mean())


def digits(numbers: Ints, bits: int, encoding: str) -> Digits:
    """Digits of integers of that many bits, sign included."""
    if encoding == "booth radix 4":
        return Digits(values=_booth(numbers, bits), base=4)
    if encoding == "canonical signed digits":
        return Digits(values=_canonical(numbers, bits), base=2)
    places = (numbers[..., None] >> np.arange(bits)) & 1
    places[..., -1] *= -1
    return Digits(values=places, base=2)


def _booth(numbers: Ints, bits: int) -> Ints:
    """Each pair of bits with the one below: -2 b(i+1) + b(i) + b(i-1)."""
    doubled = numbers[..., None] * 2  # a zero below the last bit
    place = np.arange(0, bits, 2)
    low, middle, high = ((doubled >> (place + k)) & 1 for k in range(3))
    return low + middle - 2 * high


def _canonical(numbers: Ints, bits: int) -> Ints:
    """Bits of 3 n that n lacks, less those of n that 3 n lacks, a place lower."""
    place = np.arange(1, bits + 1)
    own, thrice = (((x[..., None] >> place) & 1) for x in (numbers, 3 * numbers))
    return thrice - own


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Looked:
    """A product by tables, and what it took; ``num_picked`` would be without regard to patterns, which is all bits."""

    result: Ints
    num_built: int  # additions that fill the tables
    num_picked: int
    num_distinct: int  # patterns other than zero, each once a table


def by_tables(weights: Ints, activations: Ints, group: int, bits: int) -> Looked:
    """Activations (batch, inputs) times weights (inputs, outputs), by tables of the sums of ``group`` weights.

    Activations have that many bits, sign included; inputs are a multiple of the group.
    """
    batch, inputs = activations.shape
    scale = 1 << np.arange(bits, dtype=np.int64)
    scale[-1] *= -1
    choices: Ints = (np.arange(2**group, dtype=np.int64)[:, None] >> np.arange(group)) & 1
    result: Ints = np.zeros((batch, weights.shape[1]), dtype=np.int64)
    distinct = 0
    for start in range(0, inputs, group):
        table: Ints = choices @ weights[start : start + group]
        planes = (activations[:, start : start + group, None] >> np.arange(bits)) & 1
        patterns = (planes * (1 << np.arange(group))[:, None]).sum(axis=1)
        result += (table[patterns] * scale[:, None]).sum(axis=1)
        distinct += int(np.count_nonzero(np.unique(patterns)))
    tables, outputs = inputs // group, weights.shape[1]
    return Looked(
        result=result,
        num_built=tables * outputs * (2**group - group - 1),
        num_picked=tables * outputs * batch * bits,
        num_distinct=distinct * outputs,
    )
