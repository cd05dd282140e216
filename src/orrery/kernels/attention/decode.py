"""Decode attention: the cache streams past the queries of every step, through readers that may split a context."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention.choice import Choice, choose
from orrery.kernels.attention.timing import as_columns, timing
from orrery.kernels.ops import AttentionDecode, Floats, Timing

CONSTANTS = (
    "launch_s", "memory_frac", "feed_ratio", "start_keys", "again_s", "split_keys", "cache_ratio", "head_feed_ratio",
    "head_start_keys", "entry_frac",
    "widest_group", "parts_single", "copies_queries", "enters_apart", "splits_blindly",
)  # fmt: skip
"""Order of the kernel's constants; those of the last line say how the kernel is built and are whole numbers."""


def machine(device: Device, choice: Choice) -> Floats:
    """The device as the kernel sees it."""
    return np.array([
        choice.peak_flops_per_s, device.memory_bandwidth_bytes_per_s, float(device.num_compute_units),
        device.last_level_cache_bytes, choice.element_bytes, choice.kv_element_bytes,
    ])  # fmt: skip


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the kernel's order."""
    return np.array([constants[name] for name in CONSTANTS], dtype=np.float64)


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> tuple[Calibration, Floats, Floats]:
    choice = choose(device, "attention_decode", format, kv_format, engine)
    return choice.calibration, machine(device, choice), vector(choice.calibration.constants)


def calibration(op: AttentionDecode, device: Device, engine: str = "") -> Calibration:
    """Whose constants answer for ``op``, with their spread."""
    return _ready(device, op.format, op.kv_format, engine)[0]


def predict_decode(op: AttentionDecode, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    _, roofs, constants = _ready(device, op.format, op.kv_format, engine)
    sizes = (
        op.batch, op.context_tokens, op.num_heads, op.num_kv_heads, op.head_size, op.window_tokens, op.query_tokens
    )  # fmt: skip
    shape, columns = as_columns(sizes)
    if shape is None:
        return timing(kernel.decode_scalar(*columns, op.is_cold, roofs, constants))
    return timing(kernel.decode(*columns, op.is_cold, roofs, constants), shape)
