"""How long a routed feed-forward block takes on a device: loads of the busiest rank, measured constants, one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import ResidualTrees
from orrery.hardware.device import Device
from orrery.kernels.columns import flat_columns
from orrery.kernels.moe import _kernel as kernel
from orrery.kernels.moe.routing import RANDOM, load_table, popular_table
from orrery.kernels.ops import MoE, Popularity, Size, Timing
from orrery.kernels.residual import CAP
from orrery.kernels.residual._kernel import total
from orrery.kernels.resolve import find
from orrery.numerics.format import Format
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

Prepared = tuple[Sequence[Floats], NDArray[np.int64], Floats]
"""Sizes, the load table of every row, the tables."""

EVENLY = np.zeros((0, 2 + kernel.NUM_HEIGHTS))
"""A load table without rows: assignments dealt out evenly."""

EVERYWHERE = (1.0, 1e12)
"""The range of a size that the calibration does not limit."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """All facts about (device, format, engine) that do not depend on the shape."""

    constants: Floats
    machine: Floats
    residual: ResidualTrees | None
    ranges: Floats  # measured sizes, a line each of the kernel's SIZES


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, engine: str) -> _Ready:
    number = get_format(format)
    found = find(device, "moe", number.name, engine)
    is_own = found.format == number.name
    ranges = np.array([found.range.get(size, EVERYWHERE) for size in kernel.SIZES])
    return _Ready(
        constants_vector(found.constants), machine_vector(device, number), found.residual if is_own else None, ranges
    )


def constants_vector(constants: Mapping[str, float]) -> Floats:
    """The fitted constants in the kernel's order."""
    return np.array([constants[name] for name in kernel.CONSTANTS])


def machine_vector(device: Device, number: Format) -> Floats:
    """Units, roofs, cache, and the bytes of one element of the activations and of the weights."""
    return np.array(
        [
            float(device.num_compute_units),
            peak_flops_per_s(device, number),
            device.memory_bandwidth_bytes_per_s,
            max(device.last_level_cache_bytes, 1.0),
            activation_bytes(number),
            number.bytes_per_element,
        ]
    )


def peak_flops_per_s(device: Device, number: Format) -> float:
    """The dense matrix peak; where the device states none for this format, the rate of its vector units."""
    try:
        return device.peak_flops_per_s(number.rates)[1]
    except OutOfRange:
        return device.vector_flops_per_s


def activation_bytes(number: Format) -> float:
    """Bytes of one element that enters a product: 16 bits beside packed weights, 8 where two formats mix."""
    if number.weight_only:
        return 2.0
    return 1.0 if number.kind == "mixed" else number.bytes_per_element


def _table(
    num_experts: float, experts_per_token: float, ep: float, law: Popularity | float, num_redundant: int = 0
) -> Floats:
    if isinstance(law, Popularity):
        if law.is_dealt or num_experts <= 1:
            return EVENLY
        return popular_table(int(num_experts), int(experts_per_token), int(ep), law, num_redundant)
    return _drawn_table(num_experts, experts_per_token, ep, law)


def _drawn_table(num_experts: float, experts_per_token: float, ep: float, skew: float) -> Floats:
    if skew == 0.0 or num_experts <= 1:
        return EVENLY
    if skew < 0.0 and skew != RANDOM:
        raise OutOfRange(
            f"skew = {skew:g} is no power law; write 0 (even), a positive exponent, or {RANDOM:g} (random)."
        )
    return load_table(int(num_experts), int(experts_per_token), int(ep), skew)


def predict(op: MoE, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device``; arrays of the op's broadcast shape."""
    ready = _ready(device, op.format, engine)
    rows = columns(op, ready.constants, ready.machine)
    time_s = rows[kernel.TIME]
    if ready.residual is not None:
        time_s = _corrected(op, rows, ready)
    return Timing(
        time_s=time_s,
        compute_s=rows[kernel.COMPUTE],
        memory_s=rows[kernel.MEMORY],
        overhead_s=np.minimum(rows[kernel.OVERHEAD], time_s),
        flops=rows[kernel.FLOPS],
        bytes=rows[kernel.BYTES],
    )


def _corrected(op: MoE, rows: Floats, ready: _Ready) -> Floats:
    """The physical time times what the trees learned, never under the compute roof."""
    logs = _learned(op, ready)
    time_s, roof = rows[kernel.TIME], rows[kernel.COMPUTE]
    sizes = (op.tokens, op.hidden_size, op.ffn_size, op.num_experts)
    if rows.ndim == 1:
        found = kernel.corrected(time_s, roof, logs[0], CAP, *(float(size) for size in sizes), ready.ranges)
        return cast(Floats, found)  # one number goes for an array
    flat: list[Floats] = [np.array(time_s, dtype=np.float64).ravel()]
    flat += flat_columns((time_s, roof, *sizes), np.float64)[1][1:]
    kernel.all_corrected(flat[0], flat[1], logs, CAP, *flat[2:], ready.ranges)
    return flat[0].reshape(time_s.shape)


def _learned(op: MoE, ready: _Ready) -> Floats:
    """The trees' correction, as a logarithm: at powers of two tokens, where most was measured, and evenly between them.

    Trees jump, and a jump from one batch to the next would make a fuller step the shorter one.
    """
    place = np.log2(np.maximum(op.tokens, 1.0))
    below = np.floor(place)
    share = np.broadcast_to(place - below, np.broadcast_shapes(*(np.shape(x) for x in _shaped(op)))).ravel()
    low = _trees(replace(op, tokens=(2.0**below).astype(np.int64)), ready)
    if not share.any():
        return low
    return (1.0 - share) * low + share * _trees(replace(op, tokens=(2.0 ** (below + 1.0)).astype(np.int64)), ready)


def _shaped(op: MoE) -> tuple[Size | float | Floats, ...]:
    return (op.tokens, op.hidden_size, op.ffn_size, op.num_experts, op.experts_per_token, op.tp, op.ep, op.skew)


def _trees(op: MoE, ready: _Ready) -> Floats:
    trees = ready.residual
    assert trees is not None
    rows = columns(op, ready.constants, ready.machine, has_features=True)
    features = np.ascontiguousarray(rows[kernel.COLUMNS :].reshape(len(kernel.FEATURES), -1).T)
    logs = np.empty(len(features))
    total(features, trees.roots, trees.depths, trees.feature, trees.threshold, trees.low, trees.value, logs)
    return logs


def loads(op: MoE) -> tuple[Floats, Floats]:
    """Assignments and distinct experts on the busiest rank, whatever the device."""
    rows = columns(op, np.ones(len(kernel.CONSTANTS)), np.ones(len(kernel.MACHINE)))
    return rows[kernel.ROWS], rows[kernel.HIT]


def columns(op: MoE, constants: Floats, machine: Floats, *, has_features: bool = False) -> Floats:
    """The kernel's columns (and features), first axis; further axes are the op's broadcast shape."""
    sizes = (op.tokens, op.hidden_size, op.ffn_size, op.num_experts, op.experts_per_token, op.tp, op.ep)
    ups = 2.0 if op.is_gated else 1.0
    if isinstance(op.skew, float | int) and all(isinstance(x, int) for x in sizes):
        tokens, hidden, ffn, experts, topk, tp, ep = (float(x) for x in sizes)
        table = _table(experts, topk, ep, op.popularity or float(op.skew), op.num_redundant_experts)
        return kernel.scalar(tokens, hidden, ffn, experts, topk, tp, ep, ups, table, constants, machine)
    shape = np.broadcast_shapes(*(np.shape(x) for x in (*sizes, op.skew)))
    flat, which, tables = prepared(op)
    out = np.zeros((which.size, kernel.COLUMNS + len(kernel.FEATURES) * has_features))
    kernel.many(*flat, ups, which, tables, constants, machine, out)
    return out.T.reshape(out.shape[1], *shape)


def prepared(op: MoE) -> Prepared:
    """The sizes of every row, the load table of each, and the tables: what does not depend on constants."""
    sizes = (op.tokens, op.hidden_size, op.ffn_size, op.num_experts, op.experts_per_token, op.tp, op.ep)
    _, flat = flat_columns((*sizes, op.skew), np.float64)
    which, tables = _one_table(op, flat[0].size) or _tables(op, flat[3], flat[4], flat[6], flat[7])
    return flat[:7], which, tables


def _one_table(op: MoE, count: int) -> tuple[NDArray[np.int64], Floats] | None:
    """The same for rows that all route alike, which need no search; None where they do not."""
    keys = (op.num_experts, op.experts_per_token, op.ep)
    if not all(isinstance(key, int | float) for key in (*keys, op.skew)):
        return None
    experts, topk, ep = (float(key) for key in keys)
    table = _table(experts, topk, ep, op.popularity or float(op.skew), op.num_redundant_experts)
    return np.full(count, -1 if table is EVENLY else 0, dtype=np.int64), table[None]


def _tables(op: MoE, experts: Floats, topk: Floats, ep: Floats, skew: Floats) -> tuple[NDArray[np.int64], Floats]:
    """For every row the index of its load table (-1 = dealt evenly), and the tables."""
    which, popularity = np.full(experts.size, -1, dtype=np.int64), op.popularity
    is_drawn = skew != 0.0 if popularity is None else np.full(skew.size, not popularity.is_dealt)
    uneven = np.flatnonzero(is_drawn & (experts > 1.0))
    if not uneven.size:
        return which, np.zeros((1, 1, 2 + kernel.NUM_HEIGHTS))
    keys, inverse = np.unique(np.column_stack([experts, topk, ep, skew])[uneven], axis=0, return_inverse=True)
    which[uneven] = inverse.ravel()
    laws = ((float(e), float(k), float(p), popularity or float(s)) for e, k, p, s in keys)
    return which, np.stack([_table(*law, op.num_redundant_experts) for law in laws])
