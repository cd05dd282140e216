"""Weights of 1 to 8 bits beside 16-bit activations: loads of true bits, or padded, or carried through shared memory.

A kernel must load a weight, unpack it, and have it in the register layout that the matrix unit wants. Packed loads move
the true bits and unpack in registers. Where a language knows only widths that are powers of two, narrower codes are
padded. Where registers cannot be read under another layout, unpacked weights pass through shared memory once out and
once in; where loads cannot run ahead of that, nothing overlaps. Tilus, arXiv 2504.12984.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import lcm

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.gemm.machine import num_units
from orrery.kernels.lowbit.product import BITS_PER_BYTE, Floats, Operands, constants, time_s
from orrery.kernels.ops import Size

MAX_BITS = 8
FORMAT = "bf16"
"""The products themselves are 16 bits wide."""

UNPACK_INSTRUCTIONS = 2.0
"""A weight by itself: a shift and mask in one logic instruction, and half of a paired conversion with its scaling; as
the lop3 and fma sequences of weight-only kernels count out (Kim et al., arXiv 2211.10017)."""

STRADDLING_INSTRUCTIONS = 2.0
"""More for a weight across two words: a funnel shift that joins them, and a move."""

FLOPS_PER_INSTRUCTION = 2.0
"""A vector rate counts a multiply-add twice."""

SHARED_BYTES_PER_CYCLE = 128.0
"""Bytes per cycle of an NVIDIA GPU processor: 32 banks of 4 bytes (CUDA C++ Programming Guide, shared memory)."""

TILE_TOKENS = 128
"""That use a weight once it is unpacked, where nothing overlaps."""

UNPACKED_BYTES = 2.0
ROUND_TRIP = 2.0
"""Written to shared memory and read again."""


class Loads(StrEnum):
    """Route of weights from memory to the matrix unit."""

    PACKED = "packed"  # true bits, unpacked where they land
    PADDED = "padded"  # the next power of two, unpacked where they land
    CONVERTED = "converted"  # the next power of two, through shared memory
    SERIAL = "serial"  # the same, and loads wait for it


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightLoad:
    """Cost of one weight on its way: stored bits, instructions, bytes through shared memory."""

    stored_bits: int
    num_instructions: float
    shared_bytes: float


def straddling_frac(bits: int, word_bits: int = 32) -> float:
    """Share of packed codes that lie across the border of two words, and so take both to read.

    Words and codes meet again after the least common multiple of their widths; every border in between cuts a code.
    """
    period = lcm(bits, word_bits)
    return (period / word_bits - 1) / (period / bits)


def weight_load(bits: int, loads: Loads) -> WeightLoad:
    """Stored bits, instructions and shared-memory bytes of one weight of ``bits`` bits."""
    if not 1 <= bits <= MAX_BITS:
        raise OutOfRange(f"packed weights of {bits} bits; write 1 to {MAX_BITS}.")
    stored = bits if loads is Loads.PACKED else 1 << (bits - 1).bit_length()
    instructions = UNPACK_INSTRUCTIONS + STRADDLING_INSTRUCTIONS * straddling_frac(stored)
    passes = ROUND_TRIP if loads in (Loads.CONVERTED, Loads.SERIAL) else 0.0
    return WeightLoad(stored_bits=stored, num_instructions=instructions, shared_bytes=passes * UNPACKED_BYTES)


def unpack_flops(load: WeightLoad, device: Device) -> float:
    """Unpacking one weight, as so many operations of the vector units: instructions, and the time in shared memory."""
    shared_bytes_per_s = SHARED_BYTES_PER_CYCLE * device.compute_clock_hz * num_units(device)
    waiting = load.shared_bytes / shared_bytes_per_s * device.vector_flops_per_s
    return load.num_instructions * FLOPS_PER_INSTRUCTION + waiting


def packed_gemm_s(
    m: Size, n: Size, k: Size, bits: int, device: Device, loads: Loads = Loads.PACKED, group_elements: int = 128
) -> Floats:
    """Time of 16-bit activations (m, k) times weights (k, n) of ``bits`` bits."""
    load = weight_load(bits, loads)
    operands = Operands(weight_bits=float(load.stored_bits), group_elements=group_elements)
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    if loads is not Loads.SERIAL:
        found = constants(device, FORMAT, dequantise_ratio=1.0 / unpack_flops(load, device))
        return time_s(m, n, k, device, operands, peak, found)
    streamed = time_s(m, n, k, device, operands, peak, constants(device, FORMAT))
    unpacked = np.ceil(np.divide(m, TILE_TOKENS)) * n * k
    return streamed + unpacked * unpack_flops(load, device) / device.vector_flops_per_s


def plain_gemm_s(m: Size, n: Size, k: Size, device: Device) -> Floats:
    """The same product with 16-bit weights."""
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    operands = Operands(weight_bits=2.0 * BITS_PER_BYTE, group_elements=0)
    return time_s(m, n, k, device, operands, peak, constants(device, FORMAT))
