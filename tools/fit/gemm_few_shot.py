"""Constants of a device of your own from a few dozen timed products: pulled from the inherited ones by what was timed.

Minimises  sum w_i (log predicted_i / measured_i)^2 + sum_c ((log c - log c_inherited) / STIFFNESS)^2  by Gauss-Newton
with weights w = 1 / (SCALE max(|error|, SCALE)), so that a timing far off pulls no harder than one near by.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.gemm import predict
from orrery.kernels.gemm.machine import CHOICES
from orrery.kernels.ops import Gemm
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

STIFFNESS = 0.5  # a constant is expected within a factor of 1.6 of the inherited one
SCALE = 0.03  # repeat noise of a timing, relative
ROUNDS = 12
STEP = 1e-3


@dataclass(slots=True)
class _Search:
    """Where the constants are, in logarithms, and what the timings say about them."""

    op: Gemm
    device: Device
    found: Calibration
    names: tuple[str, ...]
    start: Floats
    time_s: Floats

    def constants(self, x: Floats) -> dict[str, float]:
        return {**self.found.constants, **dict(zip(self.names, map(float, np.exp(x)), strict=True))}

    def errors(self, x: Floats) -> Floats:
        constants = replace(self.found, constants=self.constants(x), residual=None)
        return np.log(time_with(self.op, self.device, constants) / self.time_s)

    def loss(self, x: Floats) -> float:
        size = np.abs(self.errors(x))
        huber = np.where(size < SCALE, (size / SCALE) ** 2, 2 * size / SCALE - 1)
        return float(np.sum(huber) + np.sum(((x - self.start) / STIFFNESS) ** 2))

    def step(self, x: Floats) -> Floats:
        error = self.errors(x)
        slope = np.stack([(self.errors(x + STEP * unit) - error) / STEP for unit in np.eye(len(x))], axis=1)
        weight = 1.0 / (SCALE * np.maximum(np.abs(error), SCALE))
        curvature = slope.T @ (weight[:, None] * slope) + np.eye(len(x)) / STIFFNESS**2
        downhill = slope.T @ (weight * error) + (x - self.start) / STIFFNESS**2
        return np.asarray(-np.linalg.solve(curvature, downhill), dtype=np.float64)


def time_with(op: Gemm, device: Device, found: Calibration) -> Floats:
    """Time of products with constants that are not the device's own (yet)."""
    own = replace(found, format=get_format(op.format).name, origin="device")
    tried = replace(device, calibrations={**device.calibrations, (own.op, own.format, own.engine): own})
    return predict(op, tried, own.engine).time_s


def refit(op: Gemm, time_s: Floats, device: Device, found: Calibration) -> Mapping[str, float]:
    """The constants that ``time_s``, measured for the shapes of ``op`` on ``device``, and ``found`` agree on."""
    names = tuple(c for c, value in found.constants.items() if c not in CHOICES and value > 0)
    start = np.log([found.constants[c] for c in names])
    search = _Search(op, device, found, names, start, time_s)
    x, loss = start, search.loss(start)
    for _ in range(ROUNDS):
        step = search.step(x)
        lower = search.loss(x + step)
        while lower >= loss and np.abs(step).max() > STEP:
            step = step / 2
            lower = search.loss(x + step)
        if lower >= loss:
            break
        x, loss = x + step, lower
    bounded = np.where([c.endswith("_frac") for c in names], np.minimum(x, 0.0), x)
    return search.constants(bounded)
