"""Blocks of channels with and without outliers, each stored in as many bits as it needs.

A few channels of a language model's activations are far larger than the rest, for every token. Sorted by size they
gather in few blocks, which keep eight bits; all others get by with four (COMET, arXiv 2410.12168: blocks of 128).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_above, check_range

Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockKnobs:
    """Channels of a block, and how many times the median channel's peak makes an outlier."""

    block_elements: int = 128
    outlier_ratio: float = 8.0

    def __post_init__(self) -> None:
        check_range(self, "block_elements", 1, 65536)
        check_above(self, "outlier_ratio", 1.0)


def outlier_channels(activations: Floats, knobs: BlockKnobs) -> NDArray[np.bool_]:
    """Which channels of (tokens, channels) reach ``outlier_ratio`` times the median channel's peak."""
    peaks = np.abs(activations).max(axis=0)
    return np.greater(peaks, knobs.outlier_ratio * np.median(peaks))


def clustered_order(activations: Floats, knobs: BlockKnobs) -> NDArray[np.intp]:
    """Channels with the outliers first, and otherwise as they stood: a permutation for activations and weights."""
    return np.argsort(~outlier_channels(activations, knobs), kind="stable")


def wide_blocks(activations: Floats, knobs: BlockKnobs) -> NDArray[np.bool_]:
    """Which blocks hold an outlier, and keep eight bits."""
    channels = activations.shape[1]
    if channels % knobs.block_elements:
        raise ScenarioError(f"blocks of {knobs.block_elements} do not divide {channels} channels; write a divisor.")
    return np.any(outlier_channels(activations, knobs).reshape(-1, knobs.block_elements), axis=1)


def round_block(block: Floats, bits: int) -> Floats:
    """A block (tokens, elements) on 2^bits - 1 symmetric steps, with a scale for every token."""
    most = (1 << (bits - 1)) - 1
    scale = np.abs(block).max(axis=1, keepdims=True) / most
    scale = np.where(scale > 0.0, scale, 1.0)
    return np.rint(block / scale) * scale
