"""Decode attention: the cache streams past the queries of every step, through readers that may split a context."""

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
from orrery.kernels.ops import AttentionDecode, Floats, Timing

CONSTANTS = (
    "launch_s",
    "memory_frac",
    "feed_ratio",
    "start_keys",
    "again_s",
    "split_keys",
    "cache_ratio",
    "head_feed_ratio",
    "head_start_keys",
    "entry_frac",
    "widest_group",
    "parts_single",
    "copies_queries",
    "enters_apart",
    "splits_blindly",
)
"""Order of the kernel's constants; those of the last line say how the kernel is built and are whole numbers."""

CHOICES = frozenset(CONSTANTS[-5:])
"""Constants that are not fitted to a device."""


def machine(device: Device, choice: Choice) -> Floats:
    """The device as the kernel sees it."""
    return np.array(
        [
            choice.peak_flops_per_s,
            device.memory_bandwidth_bytes_per_s,
            float(device.num_compute_units),
            device.last_level_cache_bytes,
            choice.element_bytes,
            choice.kv_element_bytes,
        ]
    )


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the kernel's order."""
    return np.array([constants[name] for name in CONSTANTS], dtype=np.float64)


COLUMNS = ("batch", "context_tokens", "num_heads", "num_kv_heads", "head_size", "window_tokens", "query_tokens")
"""Sizes in the kernel's order."""


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> Ready:
    choice = choose(device, "attention_decode", format, kv_format, engine)
    constants = vector(choice.calibration.constants)
    return ready_for(choice.calibration, machine(device, choice), constants, COLUMNS, features_kernel.DECODE_FEATURES)


def calibration(op: AttentionDecode, device: Device, engine: str = "") -> Calibration:
    """Calibration that ``op`` is predicted with: constants and their spread."""
    return _ready(device, op.format, op.kv_format, engine).calibration


def predict_decode(op: AttentionDecode, device: Device, engine: str = "", learned: bool = True) -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; ``learned`` False is the physics alone."""
    ready = _ready(device, op.format, op.kv_format, engine)
    shape, columns = as_columns(
        (
            op.batch,
            op.context_tokens,
            op.num_heads,
            op.num_kv_heads,
            op.head_size,
            op.window_tokens,
            op.query_tokens,
        )
    )
    fixed = (op.is_cold, ready.machine, ready.constants)
    trees = ready.trees if learned else None
    if shape is None:
        if trees is None:
            return timing(kernel.decode_scalar(*columns, *fixed))
        rows = np.empty(kernel.TERMS)
        features = features_kernel.decode_features_scalar(*columns, *fixed, rows)
        time_s = rows[0] * factor(features, trees, columns, ready.within)
        rows[0] = max(time_s, rows[1], rows[2] if op.is_cold else 0.0)
        return timing(rows)
    if trees is None:
        return timing(kernel.decode(*columns, *fixed), shape)
    rows = corrected(features_kernel.decode_features, fixed, trees, columns, ready.within)
    np.maximum(rows[0], np.maximum(rows[1], rows[2]) if op.is_cold else rows[1], out=rows[0])
    return timing(rows, shape)
