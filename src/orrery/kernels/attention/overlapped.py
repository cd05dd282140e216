"""Prefill attention by the rates of instructions: products, exponentials and vector work in turns, or overlapped.

For each score, 4 d operations on the matrix units, one exponential, and a few instructions of the vector units:

    in turns     time of a score = 4 d / products + 1 / exponentials + instructions / vector rate
    overlapped   max(4 d / products, 1 / exponentials + instructions / vector rate)

In turns, a warp that exponentiates does not multiply. Overlapped, two groups of warps change places, and matrix
instructions are asynchronous: the slower of the two counts. Blocks of queries fill the device in waves; under a causal
mask a score above the diagonal is not computed. No constant here was fitted to such a kernel, so that loads, addresses,
and clocks under power limits are left out: a roof of its design. Shah et al. (FlashAttention-3), arXiv 2407.08608.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.base.units import percent
from orrery.hardware.device import Device
from orrery.kernels.attention.prefill import exponentials_per_s
from orrery.kernels.ops import AttentionPrefill, Floats
from orrery.numerics.format import Format
from orrery.numerics.registry import get_format

VECTOR_INSTRUCTIONS = 3.5
"""For each score: maximum, scale and subtract, sum, and half a conversion of a pair."""

FLOPS_PER_INSTRUCTION = 2.0
"""A vector rate counts a multiply-add twice."""

SYNCHRONOUS_FRAC: Mapping[str, float] = {"hopper": 0.629}
"""Share of the peak that synchronous matrix instructions reach where asynchronous ones are the faster: of Hopper's
(Luo et al., arXiv 2402.13499, table of tensor core instructions, as recalled). Other generations have one kind."""

BLOCK_QUERIES = 128
"""Queries of a head that one processor works on (FlashAttention-2 and 3, tile sizes of their kernels)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Attention of ``num_heads`` heads over all sequences; the last query sees the last key."""

    num_heads: int
    num_queries: int
    num_keys: int
    num_head_features: int
    is_causal: bool = True

    @property
    def num_scores(self) -> float:
        """Products of a query and a key that are computed."""
        hidden = self.num_queries * (self.num_queries - 1) / 2.0 if self.is_causal else 0.0
        return self.num_heads * (float(self.num_queries) * self.num_keys - hidden)

    @property
    def num_blocks(self) -> int:
        """Blocks of queries."""
        return self.num_heads * ceil(self.num_queries / BLOCK_QUERIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Time of one attention, and of each kind of instruction by itself."""

    time_s: float
    flops: float
    peak_flops_per_s: float
    products_s: float
    exponentials_s: float
    vector_s: float
    num_waves: float
    because: tuple[str, ...]


def products_frac(device: Device, *, is_overlapped: bool) -> float:
    """Share of the matrix peak that products run at."""
    return 1.0 if is_overlapped else SYNCHRONOUS_FRAC.get(device.generation, 1.0)


def score_s(
    num_head_features: float, device: Device, peak_flops_per_s: float, frac: float
) -> tuple[float, float, float]:
    """Times (s) of one score: products, exponential, vector instructions."""
    products = 4.0 * num_head_features / (frac * peak_flops_per_s)
    vector = VECTOR_INSTRUCTIONS * FLOPS_PER_INSTRUCTION / device.vector_flops_per_s
    return products, 1.0 / exponentials_per_s(device), vector


def waiting_s(op: AttentionPrefill, device: Device) -> Floats:
    """Time (s) that an attention takes longer in turns than overlapped; what else a kernel waits for is in neither."""
    _, peak = device.peak_flops_per_s(get_format(op.format).rates)
    keys, values = int(np.max(op.head_size)), int(np.max(op.value_head_size))
    width = (keys + (values or keys)) / 2.0
    turns, overlapped = (
        score_s(width, device, peak, products_frac(device, is_overlapped=overlaps)) for overlaps in (False, True)
    )
    longer = sum(turns) - max(overlapped[0], overlapped[1] + overlapped[2])
    heads = np.multiply(op.batch, op.num_heads)
    waves = heads * np.ceil(np.divide(op.query_tokens, BLOCK_QUERIES)) / device.num_compute_units
    whole = np.ceil(waves) / np.maximum(waves, 1e-9)
    return longer * heads * _scores(op) * whole


def _scores(op: AttentionPrefill) -> Floats:
    """Scores of one head of a sequence: keys that each of its queries sees, the last of which sees all."""
    keys, queries = np.asarray(op.context_tokens, dtype=np.float64), np.asarray(op.query_tokens, dtype=np.float64)
    most = np.where(np.equal(op.window_tokens, 0), keys, np.minimum(keys, op.window_tokens))
    if not op.is_causal:
        return queries * most
    first = keys - queries
    growing = np.maximum(most - first, 0.0)  # queries that see fewer keys than the window
    return growing * (first + (growing + 1.0) / 2.0) + (queries - growing) * most


def run(shape: Shape, device: Device, number: Format, *, is_overlapped: bool) -> Run:
    """The whole attention on the device's matrix, special and vector units."""
    if device.kind != "gpu":
        raise OutOfRange(
            f"{device.name} is a {device.kind}: exponentials a clock and warps that take turns are a GPU's."
        )
    rate, peak = device.peak_flops_per_s(number.rates)
    frac = products_frac(device, is_overlapped=is_overlapped)
    products, exponential, vector = (
        each * shape.num_scores for each in score_s(shape.num_head_features, device, peak, frac)
    )
    busy = max(products, exponential + vector) if is_overlapped else products + exponential + vector
    waves = shape.num_blocks / device.num_compute_units
    return Run(
        time_s=busy * ceil(waves) / waves,
        flops=4.0 * shape.num_scores * shape.num_head_features,
        peak_flops_per_s=peak,
        products_s=products,
        exponentials_s=exponential,
        vector_s=vector,
        num_waves=waves,
        because=(
            f"products at {percent(frac, 1)} of the {rate} peak, {exponentials_per_s(device):.3g} exponentials a "
            f"second, {VECTOR_INSTRUCTIONS:g} vector instructions a score; loads and clocks under power limits left "
            "out",
        ),
    )
