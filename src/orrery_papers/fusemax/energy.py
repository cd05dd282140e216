"""Energy of attention on an array, in three passes and in one, by what each unit takes."""

from dataclasses import dataclass

from orrery.kernels.spatial.attention import EXPONENTIAL_MACS, Attention

BUFFER_ACCESSES = 7.0
"""Accesses per score in three passes: written, read for its maximum, read and written as an exponential, read for the
sum, read and written by the division; the product with the values reads whole tiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energies:
    """Energies (J) of one operation on words, by unit, and of a byte from memory."""

    multiply_add_j: float
    add_j: float
    divide_j: float
    exponential_j: float
    register_j: float  # a word read or written beside a multiplier
    buffer_j: float  # a word read or written in the buffer
    memory_j_per_bytes: float


def products_j(num_macs: float, energies: Energies) -> float:
    """Multiply-adds, each with a sum read and written beside it."""
    return num_macs * (energies.multiply_add_j + 2.0 * energies.register_j)


def three_pass_j(work: Attention, memory_bytes: float, energies: Energies) -> float:
    """Energy of products, of a softmax with units of its own whose scores wait in the buffer, and of memory."""
    macs = 2.0 * work.num_scores * work.num_head_features
    softmax = 2.0 * energies.add_j + energies.exponential_j + energies.divide_j + BUFFER_ACCESSES * energies.buffer_j
    return products_j(macs, energies) + work.num_scores * softmax + memory_bytes * energies.memory_j_per_bytes


def one_pass_j(work: Attention, memory_bytes: float, side: int, energies: Energies) -> float:
    """Energy where exponentials are multiply-adds, division is once a result, and lanes correct once a block."""
    wide, blocks = work.num_head_features, work.num_scores / side
    macs = work.num_scores * (2.0 * wide + EXPONENTIAL_MACS) + blocks * (EXPONENTIAL_MACS + 1.0 + wide)
    adds = work.num_scores * 2.0 + blocks * (2.0 + wide)
    divides = float(work.num_heads) * work.num_rows * wide
    return (
        products_j(macs, energies)
        + adds * energies.add_j
        + divides * energies.divide_j
        + memory_bytes * energies.memory_j_per_bytes
    )
