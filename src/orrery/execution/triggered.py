"""A product whose tiles start the reduce-scatter as they are done, and memory that adds what arrives.

After a product that is cut along its depth, n devices add up their results: a ring reduce-scatter of n chunks, then an
all-gather. In turns, the devices write all chunks, and each step of the ring reads a chunk (and the one that arrived),
adds, and writes. Triggered, the first chunk goes straight to the neighbour, memory adds what arrives to what is there,
and a chunk is read once to be sent on; the product runs meanwhile. Pati et al. (T3), arXiv 2401.16677.

Chunks that cross a device's memory, for n devices:

    in turns   write n (product), read 2 n - 1, write n
    triggered  write n - 1 (product), read n - 2, write n - 1 (what arrives, added in memory)

Where memory cannot add, what arrives is written, read again beside the own chunk, and the last sum is written:

    triggered  write n - 1 (product), read 2 (n - 1), write n - 1 (what arrives) and 1 (the sum)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALF_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CutProduct:
    """A product of 16-bit numbers whose depth is cut over ``num_devices``: what one device computes."""

    num_tokens: int
    num_outputs: int
    num_depth: int  # of one device
    num_devices: int

    @property
    def flops(self) -> float:
        """On one device."""
        return 2.0 * self.num_tokens * self.num_outputs * self.num_depth

    @property
    def operand_bytes(self) -> float:
        """Both operands, read once."""
        return HALF_BYTES * self.num_depth * (self.num_tokens + self.num_outputs)

    @property
    def chunk_bytes(self) -> float:
        """One device's part of the sum."""
        return HALF_BYTES * self.num_tokens * self.num_outputs / self.num_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A device and its ring: products as they run, memory, one way of a link."""

    flops_per_s: float
    memory_bandwidth_bytes_per_s: float
    link_each_way_bytes_per_s: float
    link_latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sublayer:
    """Time and traffic of the product with its all-reduce."""

    time_s: float
    memory_bytes: float


def written_chunks(num_devices: int, *, is_triggered: bool, adds_in_memory: bool = True) -> int:
    """By the product and the reduce-scatter, on one device."""
    if not is_triggered:
        return 2 * num_devices
    return 2 * num_devices - 2 if adds_in_memory else 2 * num_devices - 1


def read_chunks(num_devices: int, *, is_triggered: bool, adds_in_memory: bool = True) -> int:
    """By the reduce-scatter."""
    if not is_triggered:
        return 2 * num_devices - 1
    return num_devices - 2 if adds_in_memory else 2 * num_devices - 2


def exchanged_chunks(num_devices: int, *, adds_in_memory: bool) -> int:
    """Read and written by a triggered reduce-scatter, without what the product itself writes."""
    read = read_chunks(num_devices, is_triggered=True, adds_in_memory=adds_in_memory)
    return read + written_chunks(num_devices, is_triggered=True, adds_in_memory=adds_in_memory) - (num_devices - 1)


def ring_s(product: CutProduct, machine: Machine) -> float:
    """A reduce-scatter or an all-gather around the ring."""
    hop_s = product.chunk_bytes / machine.link_each_way_bytes_per_s + machine.link_latency_s
    return (product.num_devices - 1) * hop_s


def _gathered_chunks(num_devices: int) -> int:
    """Read and written by the all-gather, which stays as it is."""
    return 2 * (num_devices - 1)


def in_turns(product: CutProduct, machine: Machine) -> Sublayer:
    """Product, reduce-scatter and all-gather, in turn; the ring's reads and writes hide behind its links."""
    n, chunk = product.num_devices, product.chunk_bytes
    product_bytes = product.operand_bytes + n * chunk
    product_s = max(product.flops / machine.flops_per_s, product_bytes / machine.memory_bandwidth_bytes_per_s)
    scattered = (read_chunks(n, is_triggered=False) + written_chunks(n, is_triggered=False) - n) * chunk
    scatter_s = max(ring_s(product, machine), scattered / machine.memory_bandwidth_bytes_per_s)
    gathered = _gathered_chunks(n) * chunk
    return Sublayer(
        time_s=product_s + scatter_s + ring_s(product, machine), memory_bytes=product_bytes + scattered + gathered
    )


def together(product: CutProduct, machine: Machine) -> Sublayer:
    """Product and reduce-scatter at once, each as fast as alone where the memory holds both; then the all-gather."""
    ring, alone = ring_s(product, machine), in_turns(product, machine)
    gathered = _gathered_chunks(product.num_devices) * product.chunk_bytes
    memory_s = (alone.memory_bytes - gathered) / machine.memory_bandwidth_bytes_per_s
    longest_s = max(product.flops / machine.flops_per_s, ring, memory_s)
    return Sublayer(time_s=longest_s + ring, memory_bytes=alone.memory_bytes)


def staged_s(compute_s: Floats, ring_s: Floats, stages: int, contention_ratio: float = 1.0) -> Floats:
    """A product in stages of tiles, each with a hop of the ring beside the next; a device keeps the last one's tiles.

    One stage alone has no ring.
    """
    lead_s = compute_s / stages
    if stages == 1:
        return lead_s
    return lead_s + np.maximum(ring_s, compute_s - lead_s + ring_s * (1.0 - 1.0 / contention_ratio))


def triggered(product: CutProduct, machine: Machine, *, adds_in_memory: bool = True) -> Sublayer:
    """Product and reduce-scatter at once, sharing the memory; then the all-gather.

    The ring cannot start before the first chunk is there: a step of the product leads, the rest runs beside the ring.
    """
    n, chunk = product.num_devices, product.chunk_bytes
    crossings = sum(
        count(n, is_triggered=True, adds_in_memory=adds_in_memory) for count in (read_chunks, written_chunks)
    )
    moved = product.operand_bytes + crossings * chunk
    compute_s = product.flops / machine.flops_per_s
    staged = float(staged_s(np.array(compute_s), np.array(ring_s(product, machine)), n))
    overlapped_s = max(staged, moved / machine.memory_bandwidth_bytes_per_s)
    return Sublayer(time_s=overlapped_s + ring_s(product, machine), memory_bytes=moved + _gathered_chunks(n) * chunk)
