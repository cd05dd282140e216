"""Link traffic of an algorithm, per byte of message: messages that wait for each other, and bytes sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The work of one device in one algorithm; the busiest device counts.

    ``num_steps`` and ``num_out_steps`` are messages that must follow each other on the scale-up and the scale-out link;
    ``wire_ratio`` and ``out_ratio`` are bytes that a device sends over each, per byte of message; ``staged_ratio`` is
    what it copies through its own buffers; ``num_peers`` are devices whose flags it sets and waits for, one after the
    other, where that is not a step of its own. ``transports`` are the ways of moving bytes that the algorithm can use:
    NCCL's LL (a flag beside every 4 bytes), LL128 (beside every 120) and Simple (whole buffers, then a barrier), a
    switch, or an engine's own kernel, in one shot or in two. [nccl]
    """

    num_steps: int
    wire_ratio: float
    num_out_steps: int = 0
    out_ratio: float = 0.0
    staged_ratio: float = 1.0
    num_peers: int = 0
    transports: tuple[str, ...] = ("low_latency", "block", "bulk")


SHARE = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}
"""Passes over the buffer: an all-reduce is a reduce-scatter and an all-gather."""


def double_tree_ratio(num_nodes: int) -> float:
    """Bytes that the busiest node of two trees sends for a sum, half the buffer each: one S for a pair, at most 2 S.

    An inner node sends half the buffer up and to two children, a leaf half of it up. [sanders-2009]
    """
    return min(num_nodes / 2.0, 2.0)
