"""What tools report of a device's memory: the allocator's peak, what it has reserved, or all that the driver counts.

A caching allocator keeps blocks that it rounds up and cannot always use again: sixteen runs of a 70B model cut to
twelve layers reserved 1.03 to 1.08 times their peak. nvidia-smi and its like also count the driver's context, with
every kernel that is loaded, and the buffers of the communication library: one set for each group of ranks, for each
channel and neighbour a few megabytes.
"""

from typing import Literal

from orrery.execution.train.layout import TrainingLayout

Tool = Literal["allocated", "reserved", "device"]
"""Who counts: the allocator what lives, the allocator what it holds, or the driver."""

RESERVED_RATIO = 1.05
"""Of the allocator's peak: the mean of SimuMax's published runs on B200 that state both."""

CONTEXT_BYTES = 5e8
"""Of CUDA with the kernels of a training step loaded; assumed."""

COMMUNICATOR_BYTES = 2.5e8
"""Of one group of ranks: some 24 channels of about 10 MB (NCCL_BUFFSIZE of 4 MiB and its low-latency protocols) each
way; assumed."""


def reported_bytes(allocated: float, tool: Tool, layout: TrainingLayout) -> float:
    """What the tool says where the allocator's peak is ``allocated``."""
    if tool == "allocated":
        return allocated
    groups = sum(n > 1 for n in (layout.tp, layout.cp, layout.pp, layout.dp, layout.ep))
    outside = CONTEXT_BYTES + groups * COMMUNICATOR_BYTES if tool == "device" else 0.0
    return RESERVED_RATIO * allocated + outside
