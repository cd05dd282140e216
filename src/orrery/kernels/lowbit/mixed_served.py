"""Products of four-bit weights and activations of two widths inside a model's step: tiles of both, dealt out evenly."""

from math import ceil

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.lowbit.mixed_blocks import FORMAT, WIDTHS, MixedGemm, mixed_gemm_s, moved_bytes, roof_s
from orrery.kernels.lowbit.product import integer_flops_per_s
from orrery.kernels.ops import Gemm, Timing
from orrery.kernels.resolve import find

BLOCK_ELEMENTS = 128


def has_units(device: Device) -> bool:
    """Whether the device multiplies whole numbers of both widths, as far as is known."""
    try:
        return device.kind == "gpu" and all(integer_flops_per_s(device, bits) > 0.0 for bits in WIDTHS)
    except OutOfRange:
        return False


def predict(op: Gemm, device: Device, engine: str = "") -> Timing:
    """Time of the tiles; arrays of the op's broadcast shape. What rounds the activations is the kernel before."""
    sizes = (np.asarray(x, dtype=np.float64) for x in (op.m, op.n, op.k, op.batch))
    m, n, k, batch = np.broadcast_arrays(*sizes)
    rows = np.zeros((m.size, 3))
    for i, (a, b, c) in enumerate(zip(m.flat, n.flat, k.flat, strict=True)):
        rows[i] = _row(ceil(a), ceil(b), ceil(c), op.wide_frac, device)
    time_s, compute_s, moved = batch * rows.T.reshape(3, *m.shape)
    return Timing(
        time_s=time_s,
        compute_s=compute_s,
        memory_s=moved / device.memory_bandwidth_bytes_per_s,
        overhead_s=np.zeros_like(time_s),
        flops=2.0 * m * n * k * batch,
        bytes=moved,
    )


def _row(m: int, n: int, k: int, wide_frac: float, device: Device) -> tuple[float, float, float]:
    """Seconds, seconds at the peak of the units, and bytes of one product; none of no rows."""
    if m * n * k == 0:
        return 0.0, 0.0, 0.0
    op = MixedGemm(m=m, n=n, k=k, wide_frac=wide_frac, block_elements=min(BLOCK_ELEMENTS, k))
    return mixed_gemm_s(op, device), roof_s(op, device), moved_bytes(op)


def calibration(op: Gemm, device: Device, engine: str = "") -> Calibration:
    """Constants of the library's products of eight bits, which the tiles are taken to share."""
    return find(device, "gemm", FORMAT, engine)
