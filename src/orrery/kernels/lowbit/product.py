"""Parameters of a low-bit product for the matrix rule: bytes of its operands, the rate of its units, its constants.

All products here run with the constants that were measured of the device's 16-bit or 8-bit library kernels, so that two
ways of computing the same thing differ only in bytes, instructions and rates.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.gemm.machine import num_units
from orrery.kernels.gemm.rule import time_on
from orrery.kernels.ops import Gemm, Size
from orrery.kernels.resolve import find

Floats = NDArray[np.float64]

BITS_PER_BYTE = 8.0
SCALE_BITS = 16.0
RESULT_BITS = 16.0

OVER_INT8: Mapping[str, Mapping[int, float]] = {"ampere": {4: 2.0, 1: 8.0}}
"""Rates of integer matrix units over that of eight bits, by generation: A100 has 624, 1248 and 4992 TOPS for 8, 4 and 1
bits (NVIDIA A100 Tensor Core GPU Architecture, table of peak rates, as recalled)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """Stored widths of one product, and who shares a scale of the weights; 0 = a scale an output, not counted."""

    weight_bits: float
    activation_bits: float = 16.0
    group_elements: int = 128
    result_bits: float = RESULT_BITS

    @property
    def weight_bytes(self) -> float:
        """Bytes of one weight, with its share of the scale."""
        shared = SCALE_BITS / self.group_elements if self.group_elements else 0.0
        return (self.weight_bits + shared) / BITS_PER_BYTE


def integer_flops_per_s(device: Device, bits: int) -> float:
    """Dense peak of products of two ``bits``-bit whole numbers: as stated, or from the eight-bit rate of its kind."""
    stated = device.dense_flops_per_s
    if peak := stated.get(f"int{bits}"):
        return peak
    over = OVER_INT8.get(device.generation, {})
    if bits not in over or "int8" not in stated:
        raise OutOfRange(f"{device.name} states no peak rate for {bits}-bit whole numbers; it has {', '.join(stated)}.")
    return over[bits] * stated["int8"]


def constants(device: Device, format: str, *, dequantise_ratio: float = 0.0, step_ratio: float = 1.0) -> Calibration:
    """Measured constants of a library's products; ``dequantise_ratio`` as the matrix rule's, 0 = nothing to unpack.

    ``step_ratio``: steps of a tile's pipeline for one input over those in ``format``. Matrix-vector kernels of the
    library, which know only its own formats, are left out.
    """
    found = find(device, "gemm", format)
    changed = {"gemv_rows": 0.0, "step_s": found.constants["step_s"] * step_ratio}
    if dequantise_ratio:
        changed["dequantise_ratio"] = dequantise_ratio
    return replace(found, constants={**found.constants, **changed})


def time_s(
    m: Size, n: Size, k: Size, device: Device, operands: Operands, flops_per_s: float, found: Calibration
) -> Floats:
    """Time of a product with operands from memory on units of that rate."""
    activation = operands.activation_bits / BITS_PER_BYTE
    machine = np.array(
        [
            num_units(device),
            flops_per_s,
            device.vector_flops_per_s,
            device.memory_bandwidth_bytes_per_s,
            max(device.last_level_cache_bytes, 1.0),
            activation,
            operands.weight_bytes,
            operands.result_bits / BITS_PER_BYTE,
            activation,
        ]
    )
    return time_on(Gemm(m=m, n=n, k=k, format=found.format, quantises_input=False), machine, found)
