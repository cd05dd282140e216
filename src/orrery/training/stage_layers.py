"""How many layers each pipeline stage holds where they do not come out even.

A chunk of a rank holds ceil(L / (pp vp)) layers, or one less. What is missing to the full number goes short on the
ranks as evenly as it can: the last rank first, which has the head and its loss, then the first, which has the
embedding, then those in between. So 126 layers over 16 stages of 8 chunks leave 7 layers on both ends and 8 between
(embedding and head count as a layer each), and 61 over 16 leave 3 on both ends, 4 on most others. [llama-3-2024]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.training.columns import Columns

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageLayers:
    """Layers of the first stage, of the fullest in between, and of the last; arrays of the layouts.

    Without a pipeline all three are the whole model; with two stages the middle one is the fuller of them.
    """

    num_first: Floats
    num_middle: Floats
    num_last: Floats

    @property
    def most(self) -> Floats:
        """Of the fullest stage."""
        return np.maximum(self.num_middle, self.num_first)


def stage_layers(num_layers: int, x: Columns) -> StageLayers:
    """Of each layout."""
    chunks = x.pp * x.vp
    missing = -(-num_layers // chunks) * chunks - num_layers
    everywhere, over = np.divmod(missing, x.pp)
    middle = (-(-num_layers // chunks) * x.vp - everywhere).astype(np.float64)
    return StageLayers(num_first=middle - (over >= 2), num_middle=middle, num_last=middle - (over >= 1))


def by_chunk(num_layers: int, pp: int, vp: int) -> tuple[int, ...]:
    """Layers of every chunk in the order of the model; chunk c of rank r is the (c pp + r)-th.

    Those left over go to the chunks after the first, or from the first on where but one rank goes short: the last.
    """
    chunks = pp * vp
    base, over = divmod(num_layers, chunks)
    start = 0 if (chunks - over) % pp == 1 else 1
    return tuple(base + (start <= i < start + over) for i in range(chunks))


def by_rank(num_layers: int, pp: int, vp: int) -> tuple[int, ...]:
    """Layers of every rank of one layout, first to last; they add up to ``num_layers``."""
    counts = by_chunk(num_layers, pp, vp)
    return tuple(sum(counts[rank::pp]) for rank in range(pp))
