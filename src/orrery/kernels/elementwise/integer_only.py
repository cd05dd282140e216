"""Softmax, GELU and layer norm on integer codes: bytes of codes, and the instructions that the algorithms run.

    time = max(launch and stream of the codes, launch + instructions / instructions a second)

Instructions are counted by running each algorithm (``numerics.arithmetic``); on vector units one counts as two
operations of the rate, which counts multiply-adds. The launch and the share of the bandwidth are those of the
element-wise kernel that stands in the same place of a floating-point network. A GELU ends the product before it: its
instructions come on top, and it moves no bytes. I-ViT, arXiv 2207.01405.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.device import Device
from orrery.kernels.columns import timing
from orrery.kernels.elementwise import _kernel as kernel
from orrery.kernels.elementwise.rule import calibration, constants_vector, machine_vector
from orrery.kernels.ops import Timing
from orrery.numerics.arithmetic import extension_point as rules
from orrery.numerics.arithmetic.computed import Computed

IntegerKind = Literal["softmax", "layer_norm", "gelu"]

FLOPS_PER_INSTRUCTION = 2.0
"""A vector rate counts a multiply-add twice."""

COUNTED = (16, 256)
"""Rows and elements of a row on which the algorithms are counted."""

STEP_RATIO = 1.0 / 32.0
"""Value of one step of a code there: eight bits span four of a normal distribution's deviations either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernel:
    """A float kernel in the same place, and the bytes of a code that enters and of one that leaves."""

    measured_as: str
    in_bytes: float
    out_bytes: float


KERNELS: Mapping[IntegerKind, _Kernel] = {
    "softmax": _Kernel(measured_as="softmax", in_bytes=1.0, out_bytes=1.0),
    "layer_norm": _Kernel(measured_as="norm", in_bytes=2.0, out_bytes=1.0),  # the residual stream has 16 bits
    "gelu": _Kernel(measured_as="", in_bytes=0.0, out_bytes=0.0),
}


@cache
def instructions(kind: IntegerKind) -> float:
    """Arithmetic instructions of an element."""
    drawn = np.clip(np.rint(np.random.default_rng(0).normal(size=COUNTED) / STEP_RATIO), -127, 127).astype(np.int8)
    return _run(kind, drawn).num_operations()


def _run(kind: IntegerKind, x: NDArray[np.int8]) -> Computed:
    if kind == "softmax":
        return rules.softmax("shiftmax", x, STEP_RATIO)
    if kind == "gelu":
        return rules.gelu("shift-gelu", x, STEP_RATIO)
    return rules.layer_norm("i-layer-norm", x, STEP_RATIO)


def predict(kind: IntegerKind, rows: int, width: int, device: Device) -> Timing:
    """One kernel over rows of codes."""
    work, elements = KERNELS[kind], float(rows * width)
    done = instructions(kind) * FLOPS_PER_INSTRUCTION
    compute_s = elements * done / device.vector_flops_per_s
    if not work.measured_as:
        one = np.array([compute_s, compute_s, 0.0, 0.0, elements * done, 0.0])
        return timing(one)
    constants = constants_vector(calibration(work.measured_as, device).constants)
    columns = kernel.scalar(elements, work.in_bytes + work.out_bytes, done, constants, machine_vector(device))
    columns[kernel.TIME] = max(columns[kernel.TIME], columns[kernel.OVERHEAD] + compute_s)
    return timing(columns)
