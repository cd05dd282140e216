"""Kernels on a device whose memory has a processor of its own on its logic dies: where each runs, and for how long.

    here     time of the device's own processor, its launch aside
    there    max(operations / rate, bytes / bandwidth) of the processor below the memory, as far above its roofs as the
             kernel is above the device's own
    shared   1 / (1 / here + 1 / there): experts and heads are dealt out, and both end together

Experts and attention over a cache are shared; a product goes to the processor that is faster with its operations a
byte; whatever else runs stays on the device. The processor below the memory multiplies 16-bit numbers. Duplex, arXiv
2409.01141.

Where multipliers lie at the banks (a device of kind ``pim``), the chip beside the memory has no matrix units: all
products and attention run in the banks, without a launch, at the banks' roofs. Every row of a product passes the
weights anew, which their rate of operations says: a bank multiplies what it reads, once. PIM-GPT, arXiv 2310.09385.
"""

import numpy as np

from orrery.hardware.roofs import Roofs
from orrery.kernels.ops import (
    AttentionDecode,
    AttentionPrefill,
    Gemm,
    LatentAbsorb,
    LatentDecode,
    LatentPrefill,
    MoE,
    Op,
    Timing,
)

DEALT_OUT = (MoE, AttentionDecode, LatentDecode)
"""Work of independent pieces, experts or heads, that both processors can be at."""

IN_BANKS = (*DEALT_OUT, Gemm, AttentionPrefill, LatentPrefill, LatentAbsorb)
"""Work that multiplies matrices."""


def in_banks(op: Op, timing: Timing, banks: Roofs) -> Timing:
    """The timing of an op where multipliers lie at the memory's banks and nowhere else."""
    if not isinstance(op, IN_BANKS):
        return timing
    compute_s, memory_s = timing.flops / banks.flops_per_s, timing.bytes / banks.bytes_per_s
    return Timing(
        time_s=np.maximum(compute_s, memory_s),
        compute_s=compute_s,
        memory_s=memory_s,
        overhead_s=np.zeros_like(timing.overhead_s),
        flops=timing.flops,
        bytes=timing.bytes,
    )


def placed(op: Op, timing: Timing, near: Roofs) -> Timing:
    """The timing of an op that the device's own processor would take alone, where it may also run below the memory."""
    if not isinstance(op, (*DEALT_OUT, Gemm)):
        return timing
    here_s = np.maximum(timing.compute_s, timing.memory_s)
    there_s = np.maximum(timing.flops / near.flops_per_s, timing.bytes / near.bytes_per_s)
    total_s = here_s + there_s
    shared = np.divide(there_s, total_s, out=np.ones_like(total_s), where=total_s > 0.0)
    faster = np.minimum(1.0, np.divide(there_s, here_s, out=np.ones_like(here_s), where=here_s > 0.0))
    ratio = shared if isinstance(op, DEALT_OUT) else faster
    return Timing(
        time_s=timing.overhead_s + (timing.time_s - timing.overhead_s) * ratio,
        compute_s=timing.compute_s * ratio,
        memory_s=timing.memory_s * ratio,
        overhead_s=timing.overhead_s,
        flops=timing.flops,
        bytes=timing.bytes,
    )
