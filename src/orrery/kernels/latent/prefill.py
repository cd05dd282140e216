"""MLA prefill, expanded: plain attention with wider keys than values, one key/value head a query head."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention.choice import choose
from orrery.kernels.attention.features import _kernel as features_kernel
from orrery.kernels.attention.learned import Ready, corrected, factor, ready_for
from orrery.kernels.attention.prefill import machine
from orrery.kernels.columns import as_columns, timing
from orrery.kernels.ops import Floats, LatentPrefill, Timing

CONSTANTS = (
    "launch_s",
    "product_frac",
    "memory_frac",
    "entry_frac",
    "tile_blocks",
    "cache_ratio",
    "query_tile",
    "key_tile",
    "row_granule",
)
"""The constants; the last three say how the kernel is built and are whole numbers."""


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the order of the attention kernel: one matrix rate, no window, no packing."""
    c = [constants[name] for name in CONSTANTS]
    return np.array([c[0], c[1], c[1], c[1], c[1], c[2], c[3], c[4], 0.0, c[5], c[6], c[7], 0.0, c[8]])


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
"""Sizes in the order of the attention kernel; every head has keys of its own."""


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> Ready:
    choice = choose(device, "mla_prefill", format, kv_format, engine)
    constants = vector(choice.calibration.constants)
    return ready_for(choice.calibration, machine(device, choice), constants, COLUMNS, features_kernel.PREFILL_FEATURES)


def calibration(op: LatentPrefill, device: Device, engine: str = "") -> Calibration:
    """Calibration that ``op`` is predicted with: constants and their spread."""
    return _ready(device, op.format, op.kv_format, engine).calibration


def predict_prefill(op: LatentPrefill, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    ready = _ready(device, op.format, op.kv_format, engine)
    shape, columns = as_columns(
        (
            op.batch,
            op.query_tokens,
            op.context_tokens,
            op.num_heads,
            op.num_heads,
            op.head_size,
            op.value_head_size,
            0,
        )
    )
    fixed = (True, ready.machine, ready.constants)
    if shape is None:
        if ready.trees is None:
            return timing(kernel.prefill_scalar(*columns, *fixed))
        rows = np.empty(kernel.TERMS)
        features = features_kernel.prefill_features_scalar(*columns, *fixed, rows)
        rows[0] = max(rows[0] * factor(features, ready.trees, columns, ready.within), rows[1])
        return timing(rows)
    if ready.trees is None:
        return timing(kernel.prefill(*columns, *fixed), shape)
    rows = corrected(features_kernel.prefill_features, fixed, ready.trees, columns, ready.within)
    np.maximum(rows[0], rows[1], out=rows[0])
    return timing(rows, shape)
