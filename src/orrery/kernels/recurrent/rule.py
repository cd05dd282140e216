"""How long a recurrent mixer takes. Nobody published measurements to fit: efficiencies are borrowed, and it says so.

Decode streams the state, as gated activations stream (read, compute, write). Prefill runs the chunked scan of
Mamba-2 and its kin: products of small chunks on the matrix units, at a share of the rate that is assumed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.columns import flat_columns
from orrery.kernels.elementwise.rule import calibration as borrowed
from orrery.kernels.ops import Recurrent, Timing
from orrery.kernels.recurrent import _kernel as kernel
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

scalar = cast(Callable[..., Floats], kernel.scalar)  # pyright: ignore[reportUnknownMemberType]
many = cast(Callable[..., None], kernel.many)  # pyright: ignore[reportUnknownMemberType]

BORROWED_KIND = "gated_activation"
"""Whose launch and share of the bandwidth serve: two tensors in, one out, some arithmetic between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is assumed of a chunked scan, for want of measurements."""

    peak_frac: float = 0.25  # chunks of 64 to 256 tokens fill small tiles, and part of the work is not products
    chunk_tokens: float = 256.0  # Mamba-2's and the gated delta net's usual chunk
    step_s: float = 1e-6  # carrying the state from one chunk to the next, one after the other


ASSUMED = Scan()

SPREAD = Spread(
    low_80_ratio=0.6, high_80_ratio=1.8, low_95_ratio=0.35, high_95_ratio=3.5,
    because="no measurement of recurrent mixers: efficiencies borrowed from gated activations and assumed",
)  # fmt: skip


def calibration(op: Recurrent, device: Device, engine: str = "") -> Calibration:
    """The borrowed constants, with the wide interval of what was never measured."""
    found = borrowed(BORROWED_KIND, device)
    return replace(found, op="recurrent", spread=SPREAD)


@lru_cache(maxsize=1024)
def _ready(device: Device, format: str) -> tuple[Floats, Floats]:
    known = borrowed(BORROWED_KIND, device).constants
    constants = np.array([
        known["overhead_s"], known["bandwidth_frac"], ASSUMED.peak_frac, ASSUMED.step_s, known["overlap_power"],
        ASSUMED.chunk_tokens,
    ])  # fmt: skip
    try:
        flops = device.peak_flops_per_s(get_format(format).rates)[1]
    except OutOfRange:
        flops = device.vector_flops_per_s
    return constants, np.array([flops, device.memory_bandwidth_bytes_per_s])


def predict(op: Recurrent, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device``; arrays of the op's broadcast shape. No engine was measured."""
    rows = _columns(op, *_ready(device, op.format))
    return Timing(
        time_s=rows[kernel.TIME], compute_s=rows[kernel.COMPUTE], memory_s=rows[kernel.MEMORY],
        overhead_s=rows[kernel.OVERHEAD], flops=rows[kernel.FLOPS], bytes=rows[kernel.BYTES],
    )  # fmt: skip


def _columns(op: Recurrent, constants: Floats, machine: Floats) -> Floats:
    """The kernel's columns, first axis; further axes are the op's broadcast shape."""
    fixed = (float(op.state_bytes_per_element), op.is_decode, constants, machine)
    sizes = (op.tokens, op.sequences, op.state_elements, op.flops_per_token, op.width)
    if all(isinstance(x, int | float) for x in sizes):
        return scalar(*(float(x) for x in sizes), *fixed)
    shape, flat = flat_columns(sizes, np.float64)
    out = np.empty((flat[0].size, kernel.COLUMNS))
    many(*flat, *fixed, out)
    return out.T.reshape(kernel.COLUMNS, *shape)
