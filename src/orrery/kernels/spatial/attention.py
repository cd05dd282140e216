"""Attention on a square array of multipliers with a row of vector lanes beside it: cycles, traffic, energy.

Softmax as written goes over a row of scores three times (its maximum; exponentials and their sum; division), so that a
whole row must wait in the buffer, and all of it is work of the row of lanes. Kept with a running maximum and a running
sum it goes over the row once: a block of scores is exponentiated on the square array (six multiply-adds), the lanes
keep and correct maxima, sums and results, and division waits until the row has ended. Nayak et al., arXiv 2406.10491;
operations of each step as in the authors' model (FPSG-UIUC/micro24-fusemax-artifact, src/accel).
"""

import math
from dataclasses import dataclass

WORD_BYTES = 2.0

SPILLED_CROSSINGS = 4.0
"""Scores out and in, weights out and in, where the buffer cannot hold the rows of as many queries as the array has."""


LANE_OPERATIONS = 4
"""Operations per score in three passes: maximum, subtraction with exponential in a pipeline, sum, division."""

BLOCK_OPERATIONS = 3
"""Operations per score against its block's maximum: maximum, subtraction with exponential in a pipeline, sum."""

EXPONENTIAL_MACS = 6
"""An exponential of multiply-adds alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """``num_rows`` queries a head against as many keys, over all heads and sequences."""

    num_heads: int  # of all sequences
    num_rows: int
    num_head_features: int

    @property
    def num_scores(self) -> float:
        """Products of a query and a key."""
        return float(self.num_heads) * self.num_rows**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialArray:
    """``num_side`` squared multipliers, ``num_side`` lanes, and a buffer before the memory."""

    num_side: int
    clock_hz: float
    buffer_bytes: float
    memory_bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRun:
    """One attention on an array."""

    time_s: float
    busy_frac: float  # of the square array
    memory_bytes: float
    row_buffer_bytes: float  # scores that must wait on chip until their row has ended
    lanes_s: float = 0.0  # what the lanes take by themselves
    spilled_bytes: float = 0.0  # scores and weights that go to memory and back


def _buffered(work: Attention, array: SpatialArray, lane_operations: int, crossings: float) -> ArrayRun:
    """Rows of scores in the buffer; what it cannot hold crosses to memory so many times."""
    side, seconds = array.num_side, 1.0 / array.clock_hz
    products_s = 2.0 * work.num_scores * work.num_head_features / side**2 * seconds
    lanes_s = lane_operations * work.num_scores / side * seconds
    row_bytes = WORD_BYTES * work.num_rows * side
    spilled = crossings * WORD_BYTES * work.num_scores if row_bytes > array.buffer_bytes else 0.0
    moved = _operand_bytes(work, side * max(math.floor(array.buffer_bytes / row_bytes), 1)) + spilled
    time_s = max(products_s, lanes_s, moved / array.memory_bandwidth_bytes_per_s)
    return ArrayRun(
        time_s=time_s,
        busy_frac=products_s / time_s,
        memory_bytes=moved,
        row_buffer_bytes=row_bytes,
        lanes_s=lanes_s,
        spilled_bytes=spilled,
    )


def three_pass(work: Attention, array: SpatialArray) -> ArrayRun:
    """Products on the square array, softmax on the lanes, one head's rows after another.

    As many queries go together as the buffer holds scores of; where it cannot hold those of as many queries as the
    array has rows, scores go to memory and back.
    """
    return _buffered(work, array, LANE_OPERATIONS, SPILLED_CROSSINGS)


def two_pass(work: Attention, array: SpatialArray) -> ArrayRun:
    """Exponentials against the maximum of their own block, so that scores need not wait; the weights of a row wait
    until its maximum is known, and are corrected as they go to the product with the values."""
    return _buffered(work, array, BLOCK_OPERATIONS + 1, SPILLED_CROSSINGS / 2.0)


def one_pass_on_lanes(work: Attention, array: SpatialArray) -> ArrayRun:
    """One pass whose maxima, exponentials and sums are all work of the lanes, beside the products."""
    alone = one_pass(work, array)
    lanes_s = BLOCK_OPERATIONS * work.num_scores / array.num_side / array.clock_hz
    products_s = 2.0 * work.num_scores * work.num_head_features / array.num_side**2 / array.clock_hz
    time_s = max(products_s, lanes_s, alone.memory_bytes / array.memory_bandwidth_bytes_per_s)
    return ArrayRun(
        time_s=time_s,
        busy_frac=products_s / time_s,
        memory_bytes=alone.memory_bytes,
        row_buffer_bytes=alone.row_buffer_bytes,
        lanes_s=lanes_s,
    )


def one_pass(work: Attention, array: SpatialArray) -> ArrayRun:
    """Square blocks of scores in a pipeline; its steps wait for each other where one unit feeds the other.

    Of a block: product and local maximum beside what the lanes bring up to date; the new maximum; exponentials and
    their sums beside the lanes' correction; product with the values beside the lanes' rescaling.
    """
    side, wide = array.num_side, work.num_head_features
    blocks = max(work.num_rows / side, 1.0)
    scores, exponentials, values = wide + 1.0, EXPONENTIAL_MACS + 2.0, float(wide)
    lanes_update = 1.0 + wide + wide / blocks  # sums, results, and the division once a row
    lanes_correct = EXPONENTIAL_MACS + 2.0
    cycles = max(scores, lanes_update) + 1.0 + max(exponentials, lanes_correct) + max(values, float(wide))
    compute_s = work.num_scores / side**2 * cycles / array.clock_hz
    retained = WORD_BYTES * (2.0 * wide + 2.0)  # query, result, maximum and sum of a row
    room = array.buffer_bytes - 4.0 * WORD_BYTES * side * wide  # two blocks of keys and values each
    moved = _operand_bytes(work, side * max(math.floor(room / (retained * side)), 1))
    time_s = max(compute_s, moved / array.memory_bandwidth_bytes_per_s)
    busy = (scores + exponentials + values) / cycles * compute_s / time_s
    lanes = lanes_update + lanes_correct + wide
    return ArrayRun(
        time_s=time_s,
        busy_frac=busy,
        memory_bytes=moved,
        row_buffer_bytes=WORD_BYTES * side**2,
        lanes_s=work.num_scores / side**2 * lanes / array.clock_hz,
    )


def _operand_bytes(work: Attention, rows_together: int) -> float:
    """Queries and results once; keys and values again for every group of queries."""
    operand = WORD_BYTES * work.num_heads * work.num_rows * work.num_head_features
    return operand * (2.0 + 2.0 * max(work.num_rows / rows_together, 1.0))
