"""How long a library call takes on a CPU: a sum of amounts, each with a constant; see ``amounts``."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.host.amounts import amounts, least
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, Op, Timing
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

LAW = "host"
"""Name of this law in calibrations."""


def key(op: Op, engine: str) -> tuple[str, str, str]:
    """Under which op, format and engine the constants for ``op`` are filed; attention's format is compute+cache."""
    match op:
        case Gemm():
            return "gemm", get_format(op.format).name, engine
        case AttentionPrefill() | AttentionDecode():
            name = "attention_prefill" if isinstance(op, AttentionPrefill) else "attention_decode"
            return name, f"{get_format(op.format).name}+{get_format(op.kv_format).name}", engine
        case Elementwise():
            return f"elementwise_{op.kind}", get_format(op.format).name, engine
        case _:
            return "", "", engine


def serves(op: Op, device: Device, engine: str) -> bool:
    """Whether ``device`` has constants of this law for ``op``."""
    found = device.calibrations.get(key(op, engine))
    return found is not None and found.law == LAW


def calibration(op: Op, device: Device, engine: str) -> Calibration:
    """The constants that ``predict`` uses for ``op``."""
    return device.calibrations[key(op, engine)]


def terms(op: Op, device: Device, constants: Mapping[str, float]) -> dict[str, Floats]:
    """Seconds by constant; they add up to the time."""
    return {
        name: amount * constants[name] if name.endswith("_s") else amount / constants[name]
        for name, amount in amounts(op, device, constants).items()
    }


def predict(op: Op, device: Device, engine: str) -> Timing:
    """Time of ``op`` on ``device``; arrays of the op's broadcast shape.

    Nothing replays the calls of element-wise work as a graph would, so they are part of its stream: no overhead apart.
    """
    found = terms(op, device, calibration(op, device, engine).constants)
    flops, moved, peak = least(op, device)
    compute_s, memory_s = flops / peak, moved / device.memory_bandwidth_bytes_per_s
    return Timing(
        time_s=np.maximum(np.sum(list(found.values()), axis=0), compute_s),
        compute_s=compute_s,
        memory_s=memory_s,
        overhead_s=np.zeros_like(compute_s) if isinstance(op, Elementwise) else found["call_s"],
        flops=flops,
        bytes=moved,
    )
