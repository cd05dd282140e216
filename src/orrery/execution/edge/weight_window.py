"""Weights that pass through memory in a window of blocks, read from a drive while earlier blocks work.

Blocks are read in order, one at a time; a block is read once the one ``window`` places before it has been released, and
works once it is there and the one before it is done:

    read[i] = max(read[i - 1], work[i - window]) + load[i]          work[i] = max(work[i - 1], read[i]) + busy[i]

A window of one is reading on demand; one of all blocks keeps what the first pass has read. Li et al., TPI-LLM (arXiv
2410.00531), whose blocks are attention and feed-forward parts in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.errors import OutOfRange


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBlock:
    """Weights that are read, used and released together."""

    held_bytes: float  # in memory, in the format of the arithmetic
    copied_bytes: float  # beside them while they are read, in the format of the file
    load_s: float
    busy_s: float  # arithmetic and exchange


def pass_ends_s(blocks: Sequence[WeightBlock], window: int, passes: int) -> tuple[float, ...]:
    """When each of several passes over all blocks ends; the reader runs on into the next pass."""
    if window < 1:
        raise OutOfRange(f"a window of {window} blocks; write 1 or more.")
    read_s, ends, done = 0.0, list[float](), list[float]()
    for i in range(passes * len(blocks)):
        block = blocks[i % len(blocks)]
        released_s = done[i - window] if i >= window else 0.0
        stays = i >= len(blocks) and window >= len(blocks)
        read_s = max(read_s, released_s) + (0.0 if stays else block.load_s)
        done.append(max(done[-1] if done else 0.0, read_s) + block.busy_s)
        if (i + 1) % len(blocks) == 0:
            ends.append(done[-1])
    return tuple(ends)


def first_and_later_s(blocks: Sequence[WeightBlock], window: int, passes: int = 4) -> tuple[float, float]:
    """The first pass from empty memory, and a later one in its stride."""
    ends = pass_ends_s(blocks, window, passes)
    return ends[0], ends[-1] - ends[-2]


def peak_bytes(blocks: Sequence[WeightBlock], window: int) -> float:
    """The fullest window, while its last block is read."""
    starts = range(max(len(blocks) - window, 0) + 1)
    windows = [blocks[i : i + window] for i in starts]
    return max(sum(b.held_bytes for b in some) + some[-1].copied_bytes for some in windows)
