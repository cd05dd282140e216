"""Memory as tools report it: the allocator's peak, its reserved pool, or everything that the driver counts.

A caching allocator keeps blocks that it rounds up and cannot always use again: sixteen runs of a 70B model cut to
twelve layers reserved 1.03 to 1.08 times their peak. nvidia-smi and its like also count the driver's context, with
every kernel that is loaded, and the buffers of the communication library: one set for each group of ranks, for each
channel and neighbour a few megabytes.
"""

from typing import Literal

from orrery.execution.train.framework import Framework
from orrery.execution.train.layout import TrainingLayout

Tool = Literal["allocated", "reserved", "device"]
"""Memory that a tool reports: what lives in the allocator, what the allocator holds, or what the driver counts."""

RESERVED_RATIO = 1.05
"""Reserved memory over the allocator's peak: the mean of SimuMax's published runs on B200 that state both."""

CONNECTION_BYTES = 4_194_304 + 4_915_200 + 524_288
"""NCCL's receive buffers for one neighbour on one channel: NCCL_BUFFSIZE, and its two low-latency protocols'."""

CHANNELS, CONNECTIONS = 24, 3
"""Channels of a group inside and between nodes of eight devices on a switch, and connections of each channel: a ring
receives from one neighbor, a tree from the rank above and the one below. Both are set up with the group."""

COMMUNICATOR_BYTES = CHANNELS * CONNECTIONS * CONNECTION_BYTES


def num_communicators(layout: TrainingLayout) -> int:
    """Groups of ranks that a device is in.

    One for each degree. More than one degree: all ranks together too, whose gradients have one norm. Stages: also the
    first and the last, which share the embedding; and stages of cut layers all that hold one copy of the model.
    """
    degrees = sum(n > 1 for n in (layout.tp, layout.cp, layout.pp, layout.dp, layout.ep))
    return degrees + (degrees > 1) + (layout.pp > 1) + (layout.pp > 1 and layout.tp > 1)


def outside_bytes(framework: Framework, layout: TrainingLayout) -> float:
    """Memory of the driver and the communication library beside the allocator."""
    return framework.context_bytes + num_communicators(layout) * COMMUNICATOR_BYTES


def reported_bytes(allocated: float, tool: Tool, framework: Framework, layout: TrainingLayout) -> float:
    """The tool's figure where the allocator's peak is ``allocated``."""
    if tool == "allocated":
        return allocated
    return RESERVED_RATIO * allocated + (outside_bytes(framework, layout) if tool == "device" else 0.0)
