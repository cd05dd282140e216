"""The batched products that move MLA's up-projections into the query and the output: one (m, k) x (k, n) a head."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.attention.choice import matrix_peak_flops_per_s
from orrery.kernels.columns import as_columns, timing
from orrery.kernels.latent import _kernel as kernel
from orrery.kernels.ops import Floats, LatentAbsorb, Timing
from orrery.kernels.resolve import find
from orrery.numerics.registry import get_format

CONSTANTS = ("launch_s", "product_frac", "memory_frac", "start_depth", "cache_ratio", "entry_frac", "enters")
"""Order of the kernel's constants; ``enters`` says what is converted before the product: nothing, inputs, weights."""


def machine(device: Device, format: str) -> Floats:
    """The device as the kernel sees it."""
    number = get_format(format)
    return np.array(
        [
            matrix_peak_flops_per_s(device, number),
            device.memory_bandwidth_bytes_per_s,
            float(device.num_compute_units),
            device.last_level_cache_bytes,
            number.bytes_per_element,
        ]
    )


def vector(constants: Mapping[str, float]) -> Floats:
    """A calibration's constants in the kernel's order."""
    return np.array([constants[name] for name in CONSTANTS], dtype=np.float64)


@lru_cache(maxsize=4096)
def _ready(device: Device, part: str, format: str, engine: str) -> tuple[Calibration, Floats, Floats]:
    number = get_format(format)
    is_narrow = number.bytes_per_element <= 1 and not number.weight_only and "fp8" in device.dense_flops_per_s
    name = "fp8" if is_narrow else "bf16"
    try:
        found = find(device, f"mla_absorb_{part}", name, engine)
    except OutOfRange:
        found = find(device, f"mla_absorb_{part}", "bf16", engine)
    return found, machine(device, name), vector(found.constants)


def calibration(op: LatentAbsorb, device: Device, engine: str = "") -> Calibration:
    """Calibration that ``op`` is predicted with: constants and their spread."""
    return _ready(device, op.part, op.format, engine)[0]


def predict_absorb(op: LatentAbsorb, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    _, roofs, constants = _ready(device, op.part, op.format, engine)
    n, k = (op.latent_size, op.head_size) if op.part == "query" else (op.head_size, op.latent_size)
    shape, columns = as_columns((op.tokens, n, k, op.num_heads))
    if shape is None:
        return timing(kernel.absorb_scalar(*columns, op.is_cold, roofs, constants))
    return timing(kernel.absorb(*columns, op.is_cold, roofs, constants), shape)
