"""MLA prefill, expanded: plain attention with wider keys than values, one key/value head a query head."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention.choice import choose
from orrery.kernels.attention.prefill import machine
from orrery.kernels.attention.timing import as_columns, timing
from orrery.kernels.ops import Floats, LatentPrefill, Timing

CONSTANTS = (
    "launch_s", "product_frac", "memory_frac", "entry_frac", "tile_blocks", "cache_ratio",
    "query_tile", "key_tile", "row_granule",
)  # fmt: skip
"""The constants; the last three say how the kernel is built and are whole numbers."""


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the order of the attention kernel: one matrix rate, no window, no packing."""
    c = [constants[name] for name in CONSTANTS]
    return np.array([c[0], c[1], c[1], c[1], c[1], c[2], c[3], c[4], 0.0, c[5], c[6], c[7], 0.0, c[8]])


@lru_cache(maxsize=4096)
def _ready(device: Device, format: str, kv_format: str, engine: str) -> tuple[Calibration, Floats, Floats]:
    choice = choose(device, "mla_prefill", format, kv_format, engine)
    return choice.calibration, machine(device, choice), vector(choice.calibration.constants)


def calibration(op: LatentPrefill, device: Device, engine: str = "") -> Calibration:
    """Whose constants answer for ``op``, with their spread."""
    return _ready(device, op.format, op.kv_format, engine)[0]


def predict_prefill(op: LatentPrefill, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    _, roofs, constants = _ready(device, op.format, op.kv_format, engine)
    sizes = (
        op.batch, op.query_tokens, op.context_tokens, op.num_heads, op.num_heads, op.head_size, op.value_head_size, 0
    )  # fmt: skip
    shape, columns = as_columns(sizes)
    if shape is None:
        return timing(kernel.prefill_scalar(*columns, True, roofs, constants))
    return timing(kernel.prefill(*columns, True, roofs, constants), shape)
