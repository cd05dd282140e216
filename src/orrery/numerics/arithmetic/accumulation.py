"""The order and width in which a device adds up a matrix product, and so the last bits of what comes out.

A matrix unit takes a group of products and the running sum, aligns them all to the largest exponent among them, cuts
each at some bits below that sum's last place, adds, and cuts again to 24 bits: no IEEE addition is alike. Around the
unit, software cuts the inner dimension into tiles (fresh accumulators, added afterwards in float32) and into splits
that other blocks of the device add up. A vector unit adds one product after the other with a single rounding, in some
number of lanes. Widths and guard bits: Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores"; Li et al. 2024,
"FTTN: Feature-Targeted Testing for Numerical Properties of NVIDIA and AMD Matrix Accelerators", as recalled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Array = NDArray[Any]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

SIGNIFICAND_BITS = 24  # of float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Summation of a product on one device and library."""

    num_fused: int = 8  # products that enter one addition together with the running sum
    num_guard_bits: int | None = 1  # kept below the largest addend's last float32 place; None: one correct rounding
    tile_products: int | None = None  # after which a fresh accumulator starts; None: never
    num_splits: int = 1  # parts of the inner dimension that different blocks add up, in order
    num_lanes: int = 1  # accumulators that take the groups in turn and are added pairwise at the end

    def __post_init__(self) -> None:
        for name in ("num_fused", "num_splits", "num_lanes"):
            if getattr(self, name) < 1:
                raise ScenarioError(f"{name} = {getattr(self, name)} in Platform; write 1 or more.")


PLATFORMS: Mapping[str, Platform] = MappingProxyType(
    {
        "volta": Platform(num_fused=4, num_guard_bits=0),
        "ampere": Platform(num_fused=8, num_guard_bits=1),
        "hopper": Platform(num_fused=16, num_guard_bits=2),
        "hopper split-k": Platform(num_fused=16, num_guard_bits=2, num_splits=4),
        "tiled": Platform(num_fused=8, num_guard_bits=1, tile_products=64),
        "vector": Platform(num_fused=1, num_guard_bits=None, num_lanes=16),
    }
)
"""Emulated devices and kernels that differ in every way that is modelled; a name stands for a family of devices."""


def product(x: Array, weights: Array, platform: Platform) -> Float32:
    """x W^T in the order and width of a platform; operands of at most 12 significant bits, whose products are exact."""
    a, b = x.astype(np.float64), weights.astype(np.float64)
    first, *others = (_tile(a[:, i:j], b[:, i:j], platform) for i, j in _tiles(a.shape[-1], platform))
    for found in others:
        first = first + found
    return first


def _tiles(length: int, platform: Platform) -> list[tuple[int, int]]:
    """Where the inner dimension is cut: into splits, and each split where fresh accumulators start."""
    ends = [length * i // platform.num_splits for i in range(platform.num_splits + 1)]
    step = platform.tile_products or length
    return [(i, min(i + step, stop)) for start, stop in pairwise(ends) for i in range(start, stop, step)]


def _tile(a: Float64, b: Float64, platform: Platform) -> Float32:
    """One accumulator's sum, or that of lanes that fold onto one another."""
    groups = [slice(i, i + platform.num_fused) for i in range(0, a.shape[-1], platform.num_fused)]
    lanes = [np.zeros((a.shape[0], b.shape[0]), np.float32) for _ in range(platform.num_lanes)]
    for i, group in enumerate(groups):
        addends = a[:, None, group] * b[None, :, group]
        lane = i % platform.num_lanes
        lanes[lane] = fused_sum(lanes[lane], addends, platform.num_guard_bits)
    while len(lanes) > 1:
        half = (len(lanes) + 1) // 2
        lanes = [lanes[i] + lanes[i + half] if i + half < len(lanes) else lanes[i] for i in range(half)]
    return lanes[0]


def fused_sum(running: Float32, addends: Float64, num_guard_bits: int | None) -> Float32:
    """The running sum plus a group of exact products, added at once.

    With guard bits every addend is cut towards zero at 2^(E - 23 - guard), E the largest exponent among them, and the
    exact sum of what is left is cut to 24 bits. Without, the double-precision sum is rounded to nearest once.
    """
    terms = np.concatenate([running.astype(np.float64)[..., None], addends], axis=-1)
    if num_guard_bits is None:
        return terms.sum(axis=-1).astype(np.float32)
    largest = np.frexp(np.abs(terms).max(axis=-1))[1]  # magnitude below 2^largest
    cut = (largest - SIGNIFICAND_BITS - num_guard_bits)[..., None]
    total = np.trunc(np.ldexp(terms, -cut)).sum(axis=-1)
    return _truncated(np.ldexp(total, cut[..., 0]))


def _truncated(x: Float64) -> Float32:
    """To 24 bits, towards zero."""
    exponent = np.frexp(x)[1] - SIGNIFICAND_BITS
    return np.ldexp(np.trunc(np.ldexp(x, -exponent)), exponent).astype(np.float32)
