"""Wall power of a small network's training, in full and in mixed precision.

Mixed precision makes the products in 16 bits, with FP32 sums, and copies their operands down first; weights, updates
and all else stay in FP32. A step lasts as long as its kernels or as the host takes to start them, whichever is longer,
and while a device waits for its host it idles, so a faster device draws less in the mean, not more. [micikevicius-2018]
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from orrery import kernels
from orrery.hardware.device import Device
from orrery.kernels.energy import energy_j
from orrery.kernels.ops import Elementwise, Gemm
from orrery.training.small.pricing import LAUNCH_S
from orrery.training.small.work import StepWork, moved

HALF, FULL = "fp16", "fp32"

CAST_WORDS = 1.5
"""Moved for each number that is copied from 32 to 16 bits, in words of 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One step: how long, and what device and all draw in the mean."""

    step_s: float
    device_w: float
    wall_w: float


def mixed(work: StepWork) -> StepWork:
    """The same step with its products in 16 bits and their operands copied down."""
    return replace(work, ops=tuple(_mixed_ops(work)))


def draw(work: StepWork, device: Device, rest_w: float, launch_s: float = LAUNCH_S) -> Draw:
    """The step on a device whose host and supply draw ``rest_w`` besides it."""
    busy_s = busy_j = 0.0
    for op in work.ops:
        found = kernels.predict(op, device)
        format = op.format if isinstance(op, Gemm) else FULL
        busy_s += float(found.time_s)
        busy_j += float(energy_j(device, format, found.time_s, found.flops, found.bytes))
    step_s = max(busy_s, launch_s * work.num_launches)
    device_w = (busy_j + device.idle_power_w * (step_s - busy_s)) / step_s
    return Draw(step_s=step_s, device_w=device_w, wall_w=device_w + rest_w)


def _mixed_ops(work: StepWork) -> Iterator[Gemm | Elementwise]:
    for op in work.ops:
        if isinstance(op, Gemm):
            yield moved(CAST_WORDS * float(op.m * op.k + op.k * op.n))
            yield replace(op, format=HALF)
        else:
            yield op
