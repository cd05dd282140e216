"""Prefill attention: query tiles spread over the compute units, a memory floor, and the pass before it."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention.choice import Choice, choose
from orrery.kernels.attention.features import _kernel as features_kernel
from orrery.kernels.attention.learned import Ready, corrected, factor, ready_for
from orrery.kernels.columns import as_columns, timing
from orrery.kernels.ops import AttentionPrefill, Floats, Size, Timing

CONSTANTS = (
    "launch_s",
    "product_64_frac",
    "product_128_frac",
    "product_192_frac",
    "product_256_frac",
    "memory_frac",
    "entry_frac",
    "tile_blocks",
    "edge_blocks",
    "cache_ratio",
    "query_tile",
    "key_tile",
    "packs_groups",
    "row_granule",
)
"""Order of the kernel's constants; the last four say how the kernel is built and are whole numbers."""

CHOICES = frozenset(CONSTANTS[-4:])
"""Constants that are not fitted to a device."""


def machine(device: Device, choice: Choice) -> Floats:
    """The device as the kernel sees it."""
    units = float(device.num_compute_units)
    return np.array(
        [
            choice.peak_flops_per_s,
            device.memory_bandwidth_bytes_per_s,
            units,
            exponentials_per_s(device),
            device.last_level_cache_bytes,
            choice.element_bytes,
            choice.kv_element_bytes,
        ]
    )


def exponentials_per_s(device: Device) -> float:
    """16 a clock and compute unit, or one for 16 vector flops where units are wider.

    16 a clock is the special-function throughput of an SM (CUDA C++ Programming Guide, arithmetic throughput table).
    """
    return max(16.0 * device.num_compute_units * device.compute_clock_hz, device.vector_flops_per_s / 16.0)


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the kernel's order."""
    return np.array([constants[name] for name in CONSTANTS], dtype=np.float64)


COLUMNS = (
    "batch",
    "query_tokens",
    "context_tokens",
    "num_heads",
    "num_kv_heads",
    "head_size",
    "value_head_size",
    "window_tokens",
)
"""Sizes in the kernel's order."""


def sizes_of(op: AttentionPrefill) -> tuple[Size, ...]:
    """An op's sizes in the order of the columns."""
    return (
        op.batch,
        op.query_tokens,
        op.context_tokens,
        op.num_heads,
        op.num_kv_heads,
        op.head_size,
        op.value_head_size,
        op.window_tokens,
    )


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> Ready:
    choice = choose(device, "attention_prefill", format, kv_format, engine)
    constants = vector(choice.calibration.constants)
    return ready_for(choice.calibration, machine(device, choice), constants, COLUMNS, features_kernel.PREFILL_FEATURES)


def calibration(op: AttentionPrefill, device: Device, engine: str = "") -> Calibration:
    """Calibration that ``op`` is predicted with: constants and their spread."""
    return _ready(device, op.format, op.kv_format, engine).calibration


def predict_prefill(op: AttentionPrefill, device: Device, engine: str = "", learned: bool = True) -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; ``learned`` False is the physics alone."""
    ready = _ready(device, op.format, op.kv_format, engine)
    shape, columns = as_columns(sizes_of(op))
    fixed = (op.is_causal, ready.machine, ready.constants)
    trees = ready.trees if learned else None
    if shape is None:
        if trees is None:
            return timing(kernel.prefill_scalar(*columns, *fixed))
        rows = np.empty(kernel.TERMS)
        features = features_kernel.prefill_features_scalar(*columns, *fixed, rows)
        rows[0] = max(rows[0] * factor(features, trees, columns, ready.within), rows[1])
        return timing(rows)
    if trees is None:
        return timing(kernel.prefill(*columns, *fixed), shape)
    rows = corrected(features_kernel.prefill_features, fixed, trees, columns, ready.within)
    np.maximum(rows[0], rows[1], out=rows[0])
    return timing(rows, shape)
