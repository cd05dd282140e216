"""How many layers each pipeline stage holds where they do not come out even.

A chunk of a rank holds ceil(L / (pp vp)) layers, or one less. What is missing to the full number goes short on the
ranks as evenly as it can: the last rank first, which has the head and its loss, then the first, which has the
embedding, then those in between. So 126 layers over 16 stages of 8 chunks leave 7 layers on both ends and 8 between
(embedding and head count as a layer each), and 61 over 16 leave 3 on both ends, 4 on most others. [llama-3-2024]

A layout may say how many layers its first and its last stage hold; the other stages then share the rest evenly, and
each rank's chunks hold as many: Megatron's ``--decoder-first-pipeline-num-layers`` and ``--decoder-last-...``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.layout import TrainingLayout
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
        """Layers of the fullest stage."""
        return np.maximum(self.num_middle, self.num_first)


def stage_layers(num_layers: int, x: Columns) -> StageLayers:
    """Layers of the first, middle and last stage, for each layout."""
    chunks = x.pp * x.vp
    missing = -(-num_layers // chunks) * chunks - num_layers
    everywhere, over = np.divmod(missing, x.pp)
    middle = (-(-num_layers // chunks) * x.vp - everywhere).astype(np.float64)
    even = StageLayers(num_first=middle - (over >= 2), num_middle=middle, num_last=middle - (over >= 1))
    return _with_ends(num_layers, x, even) if is_told(x).any() else even


def is_told(x: Columns) -> NDArray[np.bool_]:
    """Which layouts say how many layers an end holds."""
    return (x.first_stage_layers > 0) | (x.last_stage_layers > 0)


def rest_of(num_layers: int, x: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Layers that the told ends leave, and the stages that share them."""
    first, last = x.first_stage_layers, x.last_stage_layers
    return num_layers - first - last, x.pp - (first > 0) - (last > 0)


def _with_ends(num_layers: int, x: Columns, even: StageLayers) -> StageLayers:
    """Where an end's layers are told, the others share the rest; of two stages the fuller stands for the middle."""
    rest, sharing = rest_of(num_layers, x)
    each = rest / np.maximum(sharing, 1)
    first, last = (np.where(n > 0, n, each) for n in (x.first_stage_layers, x.last_stage_layers))
    middle = np.where(x.pp > 2, each, np.maximum(first, last))
    here = is_told(x)
    return StageLayers(
        num_first=np.where(here, first, even.num_first),
        num_middle=np.where(here, middle, even.num_middle),
        num_last=np.where(here, last, even.num_last),
    )


def by_chunk(num_layers: int, layout: TrainingLayout, vp: int = 0) -> tuple[int, ...]:
    """Layers of every chunk of one layout in the order of the model; ``vp`` where a schedule has its own chunks."""
    pp, vp = layout.pp, vp or layout.vp
    ends = (layout.first_stage_layers, layout.last_stage_layers)
    if not any(ends):
        return _evenly(num_layers, pp, vp)
    each = (num_layers - sum(ends)) // max(pp - sum(n > 0 for n in ends), 1)
    return ((ends[0] or each) // vp, *[each // vp] * (pp - 2), (ends[1] or each) // vp) * vp


def by_rank(num_layers: int, layout: TrainingLayout) -> tuple[int, ...]:
    """Layers of every rank of one layout, first to last; they add up to ``num_layers``."""
    counts = by_chunk(num_layers, layout)
    return tuple(sum(counts[rank :: layout.pp]) for rank in range(layout.pp))


def _evenly(num_layers: int, pp: int, vp: int) -> tuple[int, ...]:
    """Layers of every chunk where no end is told; chunk c of rank r is the (c pp + r)-th.

    Those left over go to the chunks after the first, or from the first on where but one rank goes short: the last.
    """
    chunks = pp * vp
    base, over = divmod(num_layers, chunks)
    start = 0 if (chunks - over) % pp == 1 else 1
    return tuple(base + (start <= i < start + over) for i in range(chunks))
