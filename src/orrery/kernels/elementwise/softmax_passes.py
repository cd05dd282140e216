"""Softmax by its passes over memory: elements read and written, and instructions, as the algorithms are counted.

    time of an element = bytes / bandwidth + instructions / instructions a second

Counted by running each algorithm (``numerics.arithmetic``): reload reads and writes 5 N elements, recompute 4 N, and
two passes 3 N, at the price of more instructions. What the last-level cache holds is read again from there: then only
the first reading and the last writing count, alike for all of them, and what differs is instructions. Dukhan and
Ablavatski, arXiv 2001.04438.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from orrery.hardware.device import Device
from orrery.numerics.arithmetic.extension_point import softmax

COUNTED_ELEMENTS = 4096
"""On which the algorithms are counted; counts of an element do not depend on it by more than its logarithm's share."""

FLOPS_PER_INSTRUCTION = 2.0
"""A vector rate counts a multiply-add twice."""

ALGORITHMS: Mapping[str, str] = {
    "reload": "three-pass-reload",
    "recompute": "three-pass-recompute",
    "two-pass": "two-pass",
}
"""User's names of the algorithms, and the technique of each."""

COMPULSORY_ELEMENTS = 2.0
"""Memory operations that each element needs at least: read once, written once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Memory operations and instructions per element of the result."""

    num_memory_operations: float
    num_instructions: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """The processor of a softmax: vector units, on which an instruction on one element counts as two operations, a
    memory, and a cache.
    """

    vector_flops_per_s: float
    bytes_per_s: float
    cache_bytes: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One softmax."""

    time_s: float
    memory_bytes: float
    num_instructions: float
    memory_s: float
    instructions_s: float


@cache
def counts(name: str) -> Counts:
    """Reads, writes and operations of an algorithm for each element."""
    scores = np.random.default_rng(0).normal(size=COUNTED_ELEMENTS).astype(np.float32)
    run = softmax(ALGORITHMS[name], scores)
    return Counts(num_memory_operations=run.num_memory_operations(), num_instructions=run.num_operations())


def processor_of(device: Device) -> Processor:
    """A device's vector units and memory."""
    return Processor(
        vector_flops_per_s=device.vector_flops_per_s,
        bytes_per_s=device.memory_bandwidth_bytes_per_s,
        cache_bytes=device.last_level_cache_bytes,
    )


def fits(num_columns: float, processor: Processor, element_bytes: float) -> bool:
    """Whether the last-level cache holds a row and its result."""
    return 2.0 * num_columns * element_bytes <= processor.cache_bytes


def run(name: str, num_rows: float, num_columns: float, processor: Processor, element_bytes: float = 4.0) -> Run:
    """Rows one after the other; of a row that fits the cache, input and result, only the compulsory bytes move."""
    each, elements = counts(name), float(num_rows) * num_columns
    is_inside = fits(num_columns, processor, element_bytes)
    crossings = COMPULSORY_ELEMENTS if is_inside else each.num_memory_operations
    moved, done = crossings * elements * element_bytes, each.num_instructions * elements
    memory_s = moved / processor.bytes_per_s
    instructions_s = done * FLOPS_PER_INSTRUCTION / processor.vector_flops_per_s
    return Run(
        time_s=memory_s + instructions_s,
        memory_bytes=moved,
        num_instructions=done,
        memory_s=memory_s,
        instructions_s=instructions_s,
    )
