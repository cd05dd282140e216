"""W4A4 and W4A8 tiles of one product, dealt out to the processors of a GPU in step or evenly.

The inputs of a product are cut into blocks of channels; those with outliers keep eight-bit activations (a share f), so
their tiles run at the eight-bit rate, with weights unpacked to eight bits, and the others at the four-bit one. Beside
the matrix units, the vector units scale the sums of every block; a tile takes as long as the slower of the two.

    in step: every round of tiles lasts as long as its slowest     evenly: each processor has the same work, to a tile

    time = launch + max(tiles on the units, bytes over bandwidth) + overlap (their sum - their max)

COMET, arXiv 2410.12168: tiles of 128 x 128 outputs and 128 channels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heapreplace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_range
from orrery.hardware.device import Device
from orrery.kernels.lowbit.product import BITS_PER_BYTE, RESULT_BITS, Operands, constants, integer_flops_per_s
from orrery.kernels.resolve import find

Floats = NDArray[np.float64]

FORMAT = "int8"
WIDTHS = (4, 8)
TILE_ROWS = (16, 32, 64, 128)
TILE_COLUMNS = 128

FLOPS_PER_INSTRUCTION = 2.0
"""A vector rate counts a multiply-add twice."""

WIDEN_INSTRUCTIONS = 1.0
"""Instructions per four-bit weight that becomes an eight-bit one: two at a time, by a shift and a mask."""

SCALE_INSTRUCTIONS = 3.0
"""Instructions per whole-number sum of a block: made a float, times the product of both scales, which is a
multiplication itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedGemm:
    """A product (m, k) x (k, n) of which a share of the channel blocks keeps eight-bit activations."""

    m: int
    n: int
    k: int
    wide_frac: float
    block_elements: int = 128

    def __post_init__(self) -> None:
        check_range(self, "wide_frac", 0.0, 1.0)
        check_range(self, "block_elements", 1, self.k)

    @property
    def num_blocks(self) -> int:
        """Blocks of channels."""
        return ceil(self.k / self.block_elements)

    @property
    def num_wide(self) -> int:
        """Blocks of channels with eight-bit activations."""
        return round(self.wide_frac * self.num_blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Tiles of a product: time of one of each width on its processor, and outputs that each block has one for."""

    wide_s: float
    narrow_s: float
    num_outputs: int


def tiles_of(op: MixedGemm, device: Device) -> Tiles:
    """Times of a tile of either width, and how many there are of each block."""
    rows = next((r for r in TILE_ROWS if r >= op.m), TILE_ROWS[-1])
    peak = find(device, "gemm", FORMAT).constants["peak_frac"] / device.num_compute_units
    flops = 2.0 * rows * TILE_COLUMNS * op.block_elements
    instruction = FLOPS_PER_INSTRUCTION * device.num_compute_units / device.vector_flops_per_s
    scale = rows * TILE_COLUMNS * SCALE_INSTRUCTIONS * instruction
    widen = TILE_COLUMNS * op.block_elements * WIDEN_INSTRUCTIONS * instruction
    wide = max(flops / (peak * integer_flops_per_s(device, 8)), scale + widen)
    outputs = ceil(op.m / rows) * ceil(op.n / TILE_COLUMNS)
    narrow = max(flops / (peak * integer_flops_per_s(device, 4)), scale)
    return Tiles(wide_s=wide, narrow_s=narrow, num_outputs=outputs)


def tile_times_s(op: MixedGemm, device: Device) -> Floats:
    """Time of every tile alone on its processor, in the order of outputs and then of blocks, the wide ones first."""
    tiles = tiles_of(op, device)
    column = np.where(np.arange(op.num_blocks) < op.num_wide, tiles.wide_s, tiles.narrow_s)
    return np.tile(column, tiles.num_outputs)


def in_step_s(times_s: Floats, num_units: int) -> float:
    """Rounds of one tile a processor, each as long as its slowest tile."""
    rounds = ceil(times_s.size / num_units)
    padded = np.zeros(rounds * num_units)
    padded[: times_s.size] = times_s
    return float(padded.reshape(rounds, num_units).max(axis=1).sum())


def dealt_s(tiles: Iterable[tuple[float, int]], num_units: int) -> float:
    """Time of so many tiles of each length, the longest first, each to the processor that is free first: none ends a
    tile after another."""
    free = np.zeros(num_units)
    for length, count in tiles:
        free = _dealt(free, length, count)
    return float(free.max())


def _dealt(free: Floats, length: float, count: int) -> Floats:
    """When processors are free after ``count`` tiles of one length, each begun where it can begin first.

    All but the last few rounds fill up to one level; those are dealt tile by tile.
    """
    level = (free.sum() + count * length) / free.size
    whole = np.maximum(np.floor((level - free) / length) - 1.0, 0.0)
    given = min(int(whole.sum()), count)
    if given == int(whole.sum()):
        free = free + whole * length
        count -= given
    level_by_level = free.tolist()
    heapify(level_by_level)
    for _ in range(count):
        heapreplace(level_by_level, level_by_level[0] + length)
    return np.array(level_by_level)


@lru_cache(maxsize=4096)
def mixed_gemm_s(op: MixedGemm, device: Device, *, is_even: bool = True) -> float:
    """Time of the product, activations already rounded, weights and activations from memory."""
    fitted = constants(device, FORMAT).constants
    units = _on_units_s(op, device, is_even)
    memory = moved_bytes(op) / (fitted["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s)
    return fitted["overhead_s"] + max(units, memory) + fitted["overlap_frac"] * min(units, memory)


def _on_units_s(op: MixedGemm, device: Device, is_even: bool) -> float:
    if not is_even:
        return in_step_s(tile_times_s(op, device), device.num_compute_units)
    tiles = tiles_of(op, device)
    wide, narrow = op.num_wide * tiles.num_outputs, (op.num_blocks - op.num_wide) * tiles.num_outputs
    both = sorted([(tiles.wide_s, wide), (tiles.narrow_s, narrow)], reverse=True)
    return dealt_s(both, device.num_compute_units)


def moved_bytes(op: MixedGemm) -> float:
    """Activations of both widths, weights with a scale a block, and results."""
    operands = Operands(weight_bits=4.0, group_elements=op.block_elements)
    activation = (4.0 + 4.0 * op.num_wide / op.num_blocks) / BITS_PER_BYTE
    return op.m * op.k * activation + op.n * op.k * operands.weight_bytes + op.m * op.n * RESULT_BITS / BITS_PER_BYTE


def roof_s(op: MixedGemm, device: Device) -> float:
    """Products of both widths at the peak of their units."""
    wide = op.num_wide / op.num_blocks
    four, eight = (integer_flops_per_s(device, bits) for bits in WIDTHS)
    return 2.0 * op.m * op.n * op.k * ((1.0 - wide) / four + wide / eight)
