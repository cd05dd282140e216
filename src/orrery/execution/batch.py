"""What a step is asked to compute, and what its parts cost. Everything is an array with one entry a step."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.kernels.ops import Timing

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """What a step computes on each attention rank; arrays of one shape, one entry a step.

    ``prompt_tokens`` are the new tokens of each of ``prompt_sequences``, ending at ``prompt_context_tokens``;
    each of ``decode_sequences`` adds one token to ``decode_context_tokens`` (the new one included).
    """

    prompt_sequences: Ints
    prompt_tokens: Ints
    prompt_context_tokens: Ints
    decode_sequences: Ints
    decode_context_tokens: Ints

    @property
    def num_tokens(self) -> Ints:
        """Tokens that pass through the linear layers."""
        return self.prompt_sequences * self.prompt_tokens + self.decode_sequences

    @property
    def num_rows(self) -> Ints:
        """Sequences whose next token is sampled: all decodes and every finished prompt."""
        return self.prompt_sequences + self.decode_sequences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One kind of kernel or collective in a step, all its repetitions together; arrays as in the batch."""

    name: str
    group: str  # block it belongs to, "network", "head", "gaps"
    time_s: Floats
    compute_s: Floats
    memory_s: Floats
    overhead_s: Floats
    flops: Floats
    bytes: Floats
    op: str  # which rule answered
    format: str


def part(name: str, group: str, timing: Timing, count: float, op: str, format: str) -> Part:
    """``count`` repetitions of a timed op."""
    return Part(
        name=name, group=group, time_s=timing.time_s * count, compute_s=timing.compute_s * count,
        memory_s=timing.memory_s * count, overhead_s=timing.overhead_s * count,
        flops=timing.flops * count, bytes=timing.bytes * count, op=op, format=format,
    )  # fmt: skip


def slower(p: Part, memory_ratio: float, compute_ratio: float) -> Part:
    """The same kernels where they take longer for a byte or for an operation; the roofs stay where they are."""
    ratio = np.where(p.compute_s > p.memory_s, compute_ratio, memory_ratio)
    return replace(p, time_s=p.time_s * ratio, overhead_s=p.overhead_s * ratio)
