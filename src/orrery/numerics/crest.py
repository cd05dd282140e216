"""Integers against floats, block by block: signal to noise as it follows from how far a block's largest element stands out.

The largest element of a block sets its scale. Even steps are fine for all where it is not far above the rest (a low crest
factor, max |x| / RMS), and waste their levels where it is; floats keep their relative precision further down. Small blocks
and rotations lower the crest factor, so the finer the blocks, the better for integers (Chen et al., INT v.s. FP, arXiv
2510.25602). Everything here is computed on seeded blocks; nothing is a fitted formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.numerics.draws import draw
from orrery.numerics.error import compare
from orrery.numerics.format import Format
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import as_format, round_trip
from orrery.numerics.rotations.hadamard import signs, transform
from orrery.numerics.rotations.tails import crest_factor

Floats = NDArray[np.floating]

ELEMENTS = 1 << 16
"""Elements that a ratio is computed on."""

PASSES = 60
"""Rescaling and clipping in turn, until blocks have their root mean square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrestRow:
    """One format on blocks of one size and one crest factor, given or, as a median, found."""

    format: str
    block_elements: int
    crest_factor: float
    sqnr_db: float


def at_block(format: Format | str, block_elements: int) -> Format:
    """The format with so many elements to an innermost scale; as it is where nothing is scaled."""
    known = as_format(format)
    if not known.scaling.levels:
        return known
    inner, *outer = known.scaling.levels
    levels = (replace(inner, share=(1, block_elements)), *outer)
    return replace(known, scaling=replace(known.scaling, levels=levels))


def blocks_of_crest(crest: float, block_elements: int, num_blocks: int, seed: int) -> Floats:
    """Normal blocks, (num_blocks, block_elements), bent to have exactly that crest factor; sizes spread over an octave.

    One element of every block is the largest; the others are rescaled to leave the block a root mean square of 1 and
    clipped to the largest, in turn, so that they stay as normal as they can.
    """
    if not 1.0 <= crest**2 <= block_elements:
        raise OutOfRange(
            f"A block of {block_elements} has a crest factor of 1 to {block_elements**0.5:.3g}; got {crest:g}."
        )
    rng = np.random.default_rng(seed)
    others = rng.standard_normal((num_blocks, block_elements - 1))
    wanted = np.sqrt(block_elements - crest**2)
    for _ in range(PASSES if block_elements > 1 else 0):
        others *= wanted / np.sqrt(np.square(others).sum(axis=1, keepdims=True))
        np.clip(others, -crest, crest, out=others)
    largest = crest * rng.choice([-1.0, 1.0], (num_blocks, 1))
    return (np.hstack([largest, others]) * 2.0 ** rng.random((num_blocks, 1))).astype(np.float32)


def sqnr_by_crest(
    formats: Sequence[str], crest_factors: Sequence[float], block_elements: int, seed: int = 0
) -> tuple[CrestRow, ...]:
    """Signal to noise of every format, its innermost scale shared by such a block, at every crest factor."""
    rows: list[CrestRow] = []
    for crest in crest_factors:
        blocks = blocks_of_crest(crest, block_elements, ELEMENTS // block_elements, seed)
        rows += [_row(name, block_elements, crest, blocks) for name in formats]
    return tuple(rows)


def sqnr_by_block(
    formats: Sequence[str], blocks_elements: Sequence[int], distribution: str, seed: int = 0, *, rotated_elements: int = 0
) -> tuple[CrestRow, ...]:  # fmt: skip
    """The same for blocks cut from a drawn tensor, with the median crest factor that they come to have.

    ``rotated_elements`` neighbours go through a random Hadamard rotation first; 0 = none. Noise is the same before and
    after rotating back.
    """
    width = max(*blocks_elements, rotated_elements, 256)
    x = draw(distribution, (max(1, ELEMENTS // width), width), seed)
    if rotated_elements:
        x = np.asarray(transform(x * signs(width, seed), rotated_elements), dtype=np.float32)
    rows: list[CrestRow] = []
    for size in blocks_elements:
        median = float(np.median(crest_factor(x.reshape(-1, size))))
        rows += [_row(name, size, median, x) for name in formats]
    return tuple(rows)


def crossover(first: str, second: str, block_elements: int, seed: int = 0, tolerance: float = 0.01) -> float:
    """The crest factor up to which ``first`` has the better signal to noise; the end of the range where it never changes.

    By bisection: with a higher crest factor, even steps lose against floats.
    """
    low, high = 1.01, 0.99 * block_elements**0.5

    def lead_db(crest: float) -> float:
        rows = sqnr_by_crest((first, second), (crest,), block_elements, seed)
        return rows[0].sqnr_db - rows[1].sqnr_db

    if lead_db(high) > 0:
        return high
    while high - low > tolerance:
        middle = (low + high) / 2.0
        low, high = (middle, high) if lead_db(middle) > 0 else (low, middle)
    return (low + high) / 2.0


def clipping_bias(format: str, distribution: str = "normal", seed: int = 0) -> float:
    """What rounding adds to numbers of either sign alike, over their root mean square: (Q(x) + Q(-x)) / 2 on average.

    It is zero for a symmetric grid. Two's complement has one more code below zero, which the largest negative numbers of
    blocks take and the largest positive ones cannot: gradients summed over many steps drift (arXiv 2510.25602, on
    symmetric clipping).
    """
    known = parse_format(format)
    x = draw(distribution, (ELEMENTS // 256, 256), seed)
    both = round_trip(x, known).astype(np.float64) + round_trip(-x, known)
    return float(both.mean() / 2.0 / np.sqrt(np.square(x, dtype=np.float64).mean()))


def _row(name: str, block_elements: int, crest: float, x: Floats) -> CrestRow:
    """A format at that granularity on a tensor."""
    found = compare(x, round_trip(x, at_block(name, block_elements)))
    return CrestRow(format=name, block_elements=block_elements, crest_factor=crest, sqnr_db=found.sqnr_db)
