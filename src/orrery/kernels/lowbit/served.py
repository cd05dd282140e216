"""Products of bipolar operands inside a model's step: fused passes on one-bit units, with the roofs that they have."""

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.lowbit.one_bit import FORMAT, one_bit_gemm_s
from orrery.kernels.lowbit.product import BITS_PER_BYTE, RESULT_BITS, integer_flops_per_s
from orrery.kernels.ops import Gemm, Timing
from orrery.kernels.resolve import find
from orrery.numerics.one_bit_pairs import pair_bits


def serves(op: Gemm) -> bool:
    """Whether the op's format is a pair of bipolar ones."""
    return pair_bits(op.format) is not None


def has_units(device: Device) -> bool:
    """Whether the device multiplies single bits, as far as is known."""
    try:
        return integer_flops_per_s(device, 1) > 0.0
    except OutOfRange:
        return False


def predict(op: Gemm, device: Device, engine: str = "") -> Timing:
    """Time of the passes and their recovery; arrays of the op's broadcast shape. The activations come as single bits:
    what cuts them into bits is the kernel before, as it is of quantised inputs."""
    p, q = pair_bits(op.format) or (0, 0)
    m, n, k = (np.asarray(x, dtype=np.float64) for x in (op.m, op.n, op.k))
    m, n, k, batch = np.broadcast_arrays(m, n, k, np.asarray(op.batch, dtype=np.float64))
    time_s = np.asarray(one_bit_gemm_s(m, n, k, p, q, device), dtype=np.float64) * batch
    flops = 2.0 * m * n * k * batch
    moved = (m * k * q + n * k * p + m * n * RESULT_BITS) / BITS_PER_BYTE * batch
    return Timing(
        time_s=time_s,
        compute_s=flops * p * q / integer_flops_per_s(device, 1),
        memory_s=moved / device.memory_bandwidth_bytes_per_s,
        overhead_s=np.zeros_like(time_s),
        flops=flops,
        bytes=moved,
    )


def calibration(op: Gemm, device: Device, engine: str = "") -> Calibration:
    """Constants of the library's products of eight bits, which its passes are taken to share."""
    return find(device, "gemm", FORMAT, engine)
