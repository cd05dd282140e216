"""Signal to noise by block size, where the lead changes, and the bias of a grid with one code more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.numerics.codec.rounding import round_to
from orrery.numerics.crest import ELEMENTS, CrestRow, at_crest, sqnr_by_crest
from orrery.numerics.draws import draw
from orrery.numerics.rotations.hadamard import signs, transform
from orrery_papers.shared.tails import crest_factor

TRIED = 10
"""Crest factors that a crossover is looked for between."""


def sqnr_by_block(
    formats: Sequence[str], block_sizes: Sequence[int], distribution: str, seed: int = 0, *, rotated_elements: int = 0
) -> tuple[CrestRow, ...]:
    """The same for blocks cut from a drawn tensor, with the median crest factor that they come to have.

    ``rotated_elements`` neighbours go through a random Hadamard rotation first; 0 = none. Noise is the same before and
    after rotating back.
    """
    width = max(*block_sizes, rotated_elements, 256)
    x = draw(distribution, (max(1, ELEMENTS // width), width), seed)
    if rotated_elements:
        x = np.asarray(transform(x * signs(width, seed), rotated_elements), dtype=np.float32)
    rows: list[CrestRow] = []
    for size in block_sizes:
        median = float(np.median(crest_factor(x.reshape(-1, size))))
        rows += [at_crest(name, size, median, x) for name in formats]
    return tuple(rows)


def crossover(first: str, second: str, block_elements: int, seed: int = 0, tolerance: float = 0.01) -> float:
    """The crest factor at which ``second`` first overtakes ``first``; infinite where it never does in such a block.

    Crest factors are tried from low to high, and between the two where the lead changes by bisection.
    """

    def lead_db(crest: float) -> float:
        rows = sqnr_by_crest((first, second), (crest,), block_elements, seed)
        return rows[0].sqnr_db - rows[1].sqnr_db

    low, high = 1.0, 1.0
    for high in (1.1 * (0.9 * block_elements**0.5 / 1.1) ** (i / TRIED) for i in range(TRIED + 1)):
        if lead_db(high) < 0:
            break
        low = high
    else:
        return float("inf")
    while high - low > tolerance:
        middle = (low + high) / 2.0
        low, high = (middle, high) if lead_db(middle) >= 0 else (low, middle)
    return (low + high) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Bias that an integer grid adds to numbers whichever their sign, and the count of its lowest code."""

    mean_steps: float
    lowest_code_frac: float


def clipping_bias(
    bits: int, *, is_symmetric: bool, arithmetic: str = "bf16", block_elements: int = 32, seed: int = 0
) -> Bias:
    """The mean of (Q(x) + Q(-x)) / 2 in steps, where Q divides by amax / highest code in that arithmetic and rounds.

    Short arithmetic makes some quotients a little too large. Below zero two's complement has a code for them that it
    lacks above, so that they do not cancel, and gradients drift. A symmetric grid clips both sides alike (arXiv
    2510.25602, on symmetric clipping).
    """
    highest = float((1 << (bits - 1)) - 1)
    x = round_to(draw("normal", (ELEMENTS // block_elements, block_elements), seed), arithmetic)
    step = round_to(np.abs(x).max(axis=1, keepdims=True) / highest, arithmetic)
    quotient = round_to(x / step, arithmetic)
    codes = [np.clip(np.rint(side), -highest - (not is_symmetric), highest) for side in (quotient, -quotient)]
    lowest = np.mean([codes[0] < -highest, codes[1] < -highest])
    return Bias(mean_steps=float(np.mean(codes)), lowest_code_frac=float(lowest))
