"""Integers against floats, block by block: signal to noise by how far a block's largest element stands out.

The largest element of a block sets its scale. Even steps are fine for all where it is not far above the rest (a low
crest factor, max |x| / RMS), and waste their levels where it is; floats keep their relative precision further down.
Small blocks and rotations lower the crest factor, so the finer the blocks, the better for integers (Chen et al., INT
v.s. FP, arXiv 2510.25602). Everything here is computed on seeded blocks; nothing is a fitted formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.numerics.error import compare
from orrery.numerics.format import Format
from orrery.numerics.quantise import as_format, round_trip

Floats = NDArray[np.floating]

ELEMENTS = 1 << 15
"""Elements that a ratio is computed on."""


MIN_STRETCH, MAX_STRETCH, HALVINGS = 1e-4, 1e5, 26
"""Range of the stretch of normal elements, and the number of halvings that find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrestRow:
    """One format on blocks of one size and one crest factor."""

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

    One element of every block is the largest; the others are stretched until the block, clipped to the largest, has a
    root mean square of 1, so that they stay as normal as they can.
    """
    if not 1.0 <= crest**2 <= block_elements:
        raise OutOfRange(
            f"A block of {block_elements} has a crest factor of 1 to {block_elements**0.5:.3g}; got {crest:g}."
        )
    rng = np.random.default_rng(seed)
    others = rng.standard_normal((num_blocks, block_elements - 1))
    low, high = np.full((num_blocks, 1), MIN_STRETCH), np.full((num_blocks, 1), MAX_STRETCH)
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        is_long = (
            np.square(np.clip(middle * others, -crest, crest)).sum(axis=1, keepdims=True) > block_elements - crest**2
        )
        low, high = np.where(is_long, low, middle), np.where(is_long, middle, high)
    largest = crest * rng.choice([-1.0, 1.0], (num_blocks, 1))
    blocks = np.hstack([largest, np.clip(low * others, -crest, crest)])
    return (blocks * 2.0 ** rng.random((num_blocks, 1))).astype(np.float32)


def sqnr_by_crest(
    formats: Sequence[str], crest_factors: Sequence[float], block_elements: int, seed: int = 0
) -> tuple[CrestRow, ...]:
    """Signal to noise of every format, its innermost scale shared by such a block, at every crest factor."""
    rows: list[CrestRow] = []
    for crest in crest_factors:
        blocks = blocks_of_crest(crest, block_elements, ELEMENTS // block_elements, seed)
        rows += [at_crest(name, block_elements, crest, blocks) for name in formats]
    return tuple(rows)


def at_crest(name: str, block_elements: int, crest: float, x: Floats) -> CrestRow:
    """A format at that granularity on a tensor."""
    found = compare(x, round_trip(x, at_block(name, block_elements)))
    return CrestRow(format=name, block_elements=block_elements, crest_factor=crest, sqnr_db=found.sqnr_db)
