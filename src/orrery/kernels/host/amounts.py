"""Amounts of a call on a CPU, one for each constant of the law.

The time of a call is a sum: calls x seconds each (constants in ``_s``), and seconds at the machine's roofs over the
share of the roof that is reached (``_frac`` of the peak; ``_ratio`` where it may be above one: caches, too, are
compared with the memory's bandwidth, which is one stream's, and passes over scores with the vector units' rate).

A product reads its weight where it lies (``direct``) while it is small, else packs both operands into the order in
which the kernel reads them (``pack``) [Goto and van de Geijn 2008, Anatomy of high-performance matrix multiplication];
a single row is a matrix-vector product (``vector``). Attention is two products a key/value head with passes over all
scores between them, masked ones included; entering rows are turned and copied into the cache.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.device import Device
from orrery.kernels.elementwise.rule import KINDS
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]
Amounts = Mapping[str, Floats]

SCORE_FLOPS = 20.0
"""Operations an attention score takes from product to weight: scale, mask, maximum, exponential, sum, division."""

CHOICES = frozenset({"direct_products", "near_bytes"})
"""Constants that say how a library is built; they are not fitted."""


def amounts(op: Any, device: Device, constants: Mapping[str, float]) -> Amounts:
    """Every constant's amount for ``op``, arrays of the op's broadcast shape."""
    return _AMOUNTS[type(op)](op, device, constants)


def _gemm(op: Gemm, device: Device, constants: Mapping[str, float]) -> Amounts:
    m, n, k, batch = _floats(op.m, op.n, op.k, op.batch)
    wide = get_format(op.format).bytes_per_element
    products = m * n * k
    is_vector = np.minimum(m, n) == 1.0
    is_packed = ~is_vector & (products > constants["direct_products"])
    weight_s = batch * k * n * wide / device.memory_bandwidth_bytes_per_s
    operands_s = weight_s + batch * m * k * wide / device.memory_bandwidth_bytes_per_s
    far = np.ones(m.shape) if op.is_cold else _far(k * n * wide, device, constants)
    return {
        "call_s": np.where(products > 0, 1.0, 0.0) * batch,
        "product_frac": np.where(is_vector, 0.0, 2.0 * batch * products / _peak(device, op.format)),
        **_levels("vector", np.where(is_vector, weight_s, 0.0), far),
        **_levels("direct", np.where(is_vector | is_packed, 0.0, weight_s), far),
        **_levels("pack", np.where(is_packed, operands_s, 0.0), far),
    }


def _attention(op: AttentionPrefill | AttentionDecode, device: Device, constants: Mapping[str, float]) -> Amounts:
    is_prompt = isinstance(op, AttentionPrefill)
    is_cold = not is_prompt and op.is_cold  # a prompt's keys and values were written just now
    batch, query, context, heads, kv_heads, size, value_size = _floats(
        op.batch,
        op.query_tokens,
        op.context_tokens,
        op.num_heads,
        op.num_kv_heads,
        op.head_size,
        op.value_head_size if is_prompt else 0,
    )
    value_size = np.where(value_size > 0, value_size, size)
    seen = _seen(op, context, query)
    scores = batch * heads * query * seen
    wide = get_format(op.format).bytes_per_element
    kept_s = batch * seen * kv_heads * (size + value_size) * get_format(op.kv_format).bytes_per_element
    rows_s = batch * query * (heads * size + kv_heads * (size + value_size)) * wide
    kept_s, rows_s = kept_s / device.memory_bandwidth_bytes_per_s, rows_s / device.memory_bandwidth_bytes_per_s
    return {
        "call_s": batch * np.where(query > 0, 1.0, 0.0),
        "group_s": batch * kv_heads,
        "product_frac": 2.0 * scores * (size + value_size) / _peak(device, op.format),
        **_passes(
            "score", SCORE_FLOPS * scores / device.vector_flops_per_s, scores / np.maximum(batch, 1.0) * wide, constants
        ),
        "entry_ratio": rows_s,
        **_levels("read", kept_s, np.full(batch.shape, float(is_cold))),
    }


def _elementwise(op: Elementwise, device: Device, constants: Mapping[str, float]) -> Amounts:
    moved = _moved(op)
    return {
        "call_s": np.where(moved > 0, 1.0, 0.0),
        **_passes("stream", moved / device.memory_bandwidth_bytes_per_s, moved, constants),
    }


def _moved(op: Elementwise) -> Floats:
    """Bytes in and out, every word as wide as the op's format."""
    tokens, width = _floats(op.tokens, op.width)
    kind = KINDS[op.kind]
    words = kind.moves + kind.moves_32bit + kind.writes_format
    return tokens * width * words * get_format(op.format).bytes_per_element


def least(op: Any, device: Device) -> tuple[Floats, Floats, float]:
    """Operations and bytes that no program can do without, and the peak of the units that do them."""
    wide = get_format(op.format).bytes_per_element
    if isinstance(op, Gemm):
        m, n, k, batch = _floats(op.m, op.n, op.k, op.batch)
        return 2.0 * batch * m * n * k, batch * (m * k + k * n + m * n) * wide, _peak(device, op.format)
    if isinstance(op, Elementwise):
        tokens, width = _floats(op.tokens, op.width)
        return tokens * width * KINDS[op.kind].flops, _moved(op), device.vector_flops_per_s
    batch, query, context, heads, kv_heads, size = _floats(
        op.batch, op.query_tokens, op.context_tokens, op.num_heads, op.num_kv_heads, op.head_size
    )
    seen = np.minimum(query * (2.0 * context - query + 1.0) / 2.0, query * _seen(op, context, query))
    cache_bytes = batch * _seen(op, context, query) * kv_heads * 2.0 * size * get_format(op.kv_format).bytes_per_element
    return (
        4.0 * batch * heads * seen * size,
        cache_bytes + 2.0 * batch * query * heads * size * wide,
        _peak(device, op.format),
    )


def _seen(op: AttentionPrefill | AttentionDecode, context: Floats, query: Floats) -> Floats:
    """Tokens of the cache that a window lets through to any query."""
    window = np.asarray(op.window_tokens, dtype=np.float64)
    return np.where(window > 0, np.minimum(context, window + query - 1.0), context)


_AMOUNTS: Mapping[type, Callable[..., Amounts]] = {
    Gemm: _gemm,
    AttentionPrefill: _attention,
    AttentionDecode: _attention,
    Elementwise: _elementwise,
}


def _levels(name: str, seconds: Floats, far: Floats) -> Amounts:
    """Bytes from memory and from the caches, each with a constant of its own; ``far`` is memory's share."""
    return {f"{name}_memory_ratio": seconds * far, f"{name}_cache_ratio": seconds * (1.0 - far)}


def _far(size_bytes: Floats, device: Device, constants: Mapping[str, float]) -> Floats:
    """The share of what was read before that comes from memory again: none that is near, all beyond the last cache."""
    near = constants["near_bytes"]
    octaves = max(1.0, np.log2(device.last_level_cache_bytes / near))
    return np.clip(np.log2(np.maximum(size_bytes, 1.0) / near) / octaves, 0.0, 1.0)


def _passes(name: str, seconds: Floats, size_bytes: Floats, constants: Mapping[str, float]) -> Amounts:
    """Passes over arrays made for the occasion: near up to ``near_bytes``, all far beyond four times that.

    Near is what a core's own cache and the allocator's pool hold; a larger array comes fresh from the system each time.
    """
    share = np.clip(np.log2(np.maximum(size_bytes, 1.0) / constants["near_bytes"]) / 2.0, 0.0, 1.0)
    return {f"{name}_near_ratio": seconds * (1.0 - share), f"{name}_far_ratio": seconds * share}


def _peak(device: Device, format: str) -> float:
    return device.peak_flops_per_s(get_format(format).rates)[1]


def _floats(*sizes: Any) -> tuple[Floats, ...]:
    return tuple(np.broadcast_arrays(*(np.asarray(size, dtype=np.float64) for size in sizes)))
