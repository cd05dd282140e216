"""Rotations that are computed as a model serves: Hadamard matrices in front of products of few bits.

Folded, the rotations of the residual stream and of values lie in the weights and cost nothing; what stands behind an
activation cannot be folded, so the inputs of down projections turn over their whole width, and queries and keys where
the cache is narrow (Liu et al. 2024, SpinQuant, arXiv 2405.16406). In blocks, every product's input turns by a matrix
of so many features (MR-GPTQ, arXiv 2509.23202).

    time     max(kernel that reads 16 bits and writes the product's format, launch + operations / rate)
    blocks   2 x features an element, on the matrix units
    whole    log2 of the width's power of two, and the factor that is left over, an element, on the vector units
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.batch import Batch, Part, part
from orrery.execution.formats import is_16bit
from orrery.execution.layout import Deployment, OnlineRotation
from orrery.execution.shard import ExpertsShard, LinearShard, MixerShard, Shard
from orrery.hardware.device import Device
from orrery.kernels.ops import Elementwise, Timing
from orrery.models.model import SoftmaxAttention
from orrery.numerics.registry import get_format

WIDE = "bf16"

FLOPS_PER_ADDITION = 2.0
"""A vector rate counts a multiply-add twice; an addition fills one as well."""


def rotation_parts(deployment: Deployment, rotation: OnlineRotation, cut: Shard, batch: Batch) -> Iterator[Part]:
    """Every rotation of a step."""
    tokens = batch.num_tokens
    for x in cut.linears:
        if not is_16bit(x.format) and (rotation.block_features or x.name.endswith("down")):
            yield _part(deployment, rotation, x, f"{x.name} rotation", tokens, x.groups * x.k, x.format)
    for x in cut.experts:
        if not is_16bit(x.format):
            yield from _of_experts(deployment, rotation, x, tokens)
    for x in cut.mixers:
        if (
            not rotation.block_features
            and not is_16bit(deployment.formats.kv)
            and isinstance(x.mixer, SoftmaxAttention)
        ):
            heads = x.num_heads + x.num_kv_heads
            by_head = OnlineRotation(width=x.mixer.head_size)
            yield _part(deployment, by_head, x, "query and key rotation", tokens * heads, x.mixer.head_size, WIDE)


def _of_experts(
    deployment: Deployment, rotation: OnlineRotation, x: ExpertsShard, tokens: NDArray[Any]
) -> Iterator[Part]:
    """Rotations of what enters experts, once for all of them, and of what stands between their products."""
    e, ranks = x.experts, deployment.layout.dp if deployment.layout.shares_experts else 1
    if rotation.block_features:
        yield _part(deployment, rotation, x, "experts rotation", tokens, e.hidden_size, x.format)
    rows = -(-tokens * ranks * e.experts_per_token // x.ep)
    yield _part(deployment, rotation, x, "experts down rotation", rows, max(1, e.ffn_size // x.tp), x.format)


def _part(
    deployment: Deployment,
    rotation: OnlineRotation,
    x: LinearShard | ExpertsShard | MixerShard,
    name: str,
    rows: NDArray[Any],
    width: int,
    format: str,
) -> Part:
    written = WIDE if get_format(format).weight_only else format
    timing = rotated(rotation, rows, width, written, deployment.cluster.device)
    return part(name, x.block, timing, x.count, "rotation", WIDE)


def rotated(rotation: OnlineRotation, rows: NDArray[Any], width: int, format: str, device: Device) -> Timing:
    """One kernel that turns rows and writes them in a format."""
    moved = kernels.predict(Elementwise(kind="quantise", tokens=rows, width=width, format=format), device)
    elements = rows.astype(np.float64) * width
    if rotation.block_features:
        flops = 2.0 * rotation.block_features * elements
        compute_s = flops / device.peak_flops_per_s(get_format(WIDE).rates)[1]
    else:
        flops = additions(rotation.width or width) * elements
        compute_s = FLOPS_PER_ADDITION * flops / device.vector_flops_per_s
    return Timing(
        time_s=np.where(elements > 0, np.maximum(moved.time_s, moved.overhead_s + compute_s), 0.0),
        compute_s=compute_s,
        memory_s=moved.memory_s,
        overhead_s=moved.overhead_s,
        flops=flops,
        bytes=moved.bytes,
    )


def additions(width: int) -> float:
    """Additions of an element in a transform of that width: a stage for each factor of two, a matrix for the rest.

    >>> additions(1024), additions(14336)
    (10.0, 18.0)
    """
    stages = (width & -width).bit_length() - 1
    rest = width >> stages
    return float(stages + (rest if rest > 1 else 0))
