"""A product of two sparse matrices in three orders: what each brings from memory, writes, and adds on chip.

By rows and columns (inner), each row of A waits on chip and meets every column of B, whether they have anything in
common or not. By columns and rows (outer), A and B are read once, but every partial product is written, and read again
to be merged. Row by row (Gustavson 1978), each entry of a row of A brings a row of B, and partial products are added in
a hash table on chip, an atomic addition each; only the result is written. Shivdikar (SMASH), arXiv 2105.14156.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

ENTRY_BYTES = 12.0
"""A 64-bit value with a 32-bit index."""

RECURSIVE_FRAC = (0.57, 0.19, 0.19)
"""Share of three of the four quarters, each again divided so, of the Graph500 benchmark's matrices (R-MAT)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """Where a square matrix of ``num_rows`` rows has entries, each place once, in order of rows."""

    num_rows: int
    rows: Ints
    columns: Ints

    @property
    def num_entries(self) -> int:
        """Places that are not zero."""
        return self.rows.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Cost of one order of the product."""

    read_bytes: float
    written_bytes: float
    num_atomics: int

    @property
    def memory_bytes(self) -> float:
        """Read and written."""
        return self.read_bytes + self.written_bytes


def recursive(scale: int, num_entries_per_row: int, random: np.random.Generator) -> Sparse:
    """An R-MAT of 2^scale rows: entries drawn by quarters, those drawn twice kept once."""
    count, size = num_entries_per_row << scale, 1 << scale
    rows, columns = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    ends = np.cumsum(RECURSIVE_FRAC)
    for _ in range(scale):
        quarter = np.searchsorted(ends, random.random(count))
        rows, columns = 2 * rows + quarter // 2, 2 * columns + quarter % 2
    places = np.unique(rows * size + columns)
    return Sparse(num_rows=size, rows=places // size, columns=places % size)


def num_partial_products(left: Sparse, right: Sparse) -> int:
    """Pairs of an entry in a column of A and one in that row of B."""
    return int(_counts(left.columns, left.num_rows) @ _counts(right.rows, right.num_rows))


def num_results(left: Sparse, right: Sparse) -> int:
    """Entries of the product: for each row of A, the places of all rows of B that it brings."""
    places = np.zeros((right.num_rows, -(-right.num_rows // 8)), dtype=np.uint8)
    np.bitwise_or.at(places, (right.rows, right.columns // 8), np.uint8(128) >> (right.columns % 8).astype(np.uint8))
    ends = np.searchsorted(left.rows, np.arange(left.num_rows + 1))
    found = 0
    for begin, end in pairwise(ends):
        if end > begin:
            together = np.bitwise_or.reduce(places[left.columns[begin:end]], axis=0)
            found += int(np.unpackbits(together).sum())
    return found


def inner(left: Sparse, right: Sparse) -> Traffic:
    """Rows of A once, all of B for each row of A that has an entry."""
    rows = int(np.count_nonzero(_counts(left.rows, left.num_rows)))
    read = left.num_entries + float(rows) * right.num_entries
    return Traffic(read_bytes=ENTRY_BYTES * read, written_bytes=ENTRY_BYTES * num_results(left, right), num_atomics=0)


def outer(left: Sparse, right: Sparse) -> Traffic:
    """Both once, and all partial products out and in."""
    partial = float(num_partial_products(left, right))
    return Traffic(
        read_bytes=ENTRY_BYTES * (left.num_entries + right.num_entries + partial),
        written_bytes=ENTRY_BYTES * (partial + num_results(left, right)),
        num_atomics=0,
    )


def by_rows(left: Sparse, right: Sparse) -> Traffic:
    """A once, a row of B for each entry of A, sums on chip."""
    partial = num_partial_products(left, right)
    return Traffic(
        read_bytes=ENTRY_BYTES * (left.num_entries + partial),
        written_bytes=ENTRY_BYTES * num_results(left, right),
        num_atomics=partial,
    )


def _counts(places: Ints, size: int) -> Ints:
    return np.bincount(places, minlength=size).astype(np.int64)
