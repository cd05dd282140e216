"""Domino: slices of the batch, or of a weight's columns, take turns: one is summed while the others are computed."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class DominoKnobs:
    """Slices of the batch's rows, of the columns of the last weight before a sum, and how much of the products that is.

    Half of an MLP of two matrices; assumed for attention too.
    """

    row_slices: int = 2
    column_slices: int = 1
    last_frac: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "row_slices", 1, 64)
        check_range(self, "column_slices", 1, 64)
        check_range(self, "last_frac", 0.0, 1.0)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """Row slices alone: all work, products cut, beside all collectives, cut; the last sum hides behind the next block.

    Column slices, alone or of row slices: a block ends with its last sum, for the next one needs all columns. The sums
    start as their slices are there, and the last ones hide behind weight gradients only.
    """
    rows, columns, last = int(knobs[0]), int(knobs[1]), float(knobs[2])
    network_s, weight_s = pair.cut_network_s(rows * columns), pair.backward_weight_s
    rows_s = pair.cut_compute_s(rows)
    if rows > 1 and columns == 1:
        others_s = pair.other_compute_s  # of the other slice: attention and streams hide a sum as well as products do
        both_s = beside(rows_s + weight_s + others_s, network_s, pair.contention_ratio) - others_s
        return np.minimum(pair.serial_s, pair.inside_s + both_s)
    columns_s = last * (rows_s + pair.cut_columns_s(columns) - pair.compute_s)
    work = ((1.0 - last) * rows_s, columns_s, weight_s)
    work_s = sum(work)
    free_s = _block(work, network_s, rows, columns)
    slower_s = (work_s + network_s - free_s) * (1.0 - 1.0 / pair.contention_ratio)
    slower_ratio = 1.0 + slower_s / np.where(work_s > 0.0, work_s, 1.0)
    first_s, columns_s, weight_s = (part_s * slower_ratio for part_s in work)
    return np.minimum(pair.serial_s, pair.inside_s + _block((first_s, columns_s, weight_s), network_s, rows, columns))


def _block(work: tuple[Floats, Floats, Floats], network_s: Floats, rows: int, columns: int) -> Floats:
    """Seconds of a block whose row slices each take all first products, then the last one column slice by column slice.

    ``work`` is first products, last products, and the weight gradients that come after all of them.
    """
    first_s, column_s, message_s = work[0] / rows, work[1] / (rows * columns), network_s / (rows * columns)
    computed_s = summed_s = np.zeros(np.broadcast_shapes(first_s.shape, message_s.shape))
    for _ in range(rows):
        computed_s = computed_s + first_s
        for _ in range(columns):
            computed_s = computed_s + column_s
            summed_s = np.maximum(summed_s, computed_s) + message_s
    return np.maximum(summed_s, computed_s + work[2])


TECHNIQUE = Technique(
    name="domino",
    extension_point="execution.tensor_overlap",
    rule=rule,
    knobs=DominoKnobs,
    gains="All-reduces hide behind other slices in both directions, also where links are slow.",
    costs="Products of a slice fill the device worse and read the weights once for every row slice.",
    claims=("domino-2024",),
)
