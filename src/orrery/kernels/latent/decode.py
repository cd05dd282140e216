"""MLA decode, absorbed: every head of a sequence reads the same latents."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention.choice import choose
from orrery.kernels.attention.decode import machine
from orrery.kernels.attention.learned import Ready, corrected, factor, ready_for
from orrery.kernels.columns import as_columns, timing
from orrery.kernels.latent import _kernel as kernel
from orrery.kernels.ops import Floats, LatentDecode, Timing

CONSTANTS = (
    "launch_s",
    "memory_frac",
    "feed_ratio",
    "product_frac",
    "start_latents",
    "again_s",
    "split_keys",
    "cache_ratio",
    "entry_frac",
    "row_tile",
)
"""Order of the kernel's constants; the last says how the kernel is built and is a whole number."""


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the kernel's order."""
    return np.array([constants[name] for name in CONSTANTS], dtype=np.float64)


COLUMNS = ("batch", "context_tokens", "num_heads", "head_size", "value_head_size", "query_tokens")
"""Sizes in the kernel's order."""


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> Ready:
    choice = choose(device, "mla_decode", format, kv_format, engine)
    constants = vector(choice.calibration.constants)
    return ready_for(choice.calibration, machine(device, choice), constants, COLUMNS, kernel.DECODE_FEATURES)


def calibration(op: LatentDecode, device: Device, engine: str = "") -> Calibration:
    """Calibration that ``op`` is predicted with: constants and their spread."""
    return _ready(device, op.format, op.kv_format, engine).calibration


def predict_decode(op: LatentDecode, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    ready = _ready(device, op.format, op.kv_format, engine)
    sizes = (op.batch, op.context_tokens, op.num_heads, op.head_size, op.value_head_size, op.query_tokens)
    shape, columns = as_columns(sizes)
    fixed = (op.is_cold, ready.machine, ready.constants)
    if shape is None:
        if ready.trees is None:
            return timing(kernel.decode_scalar(*columns, *fixed))
        rows = np.empty(kernel.TERMS)
        features = kernel.decode_features_scalar(*columns, *fixed, rows)
        time_s = rows[0] * factor(features, ready.trees, columns, ready.within)
        rows[0] = max(time_s, rows[1], rows[2] if op.is_cold else 0.0)
        return timing(rows)
    if ready.trees is None:
        return timing(kernel.decode(*columns, *fixed), shape)
    rows = corrected(kernel.decode_features, fixed, ready.trees, columns, ready.within)
    np.maximum(rows[0], np.maximum(rows[1], rows[2]) if op.is_cold else rows[1], out=rows[0])
    return timing(rows, shape)
