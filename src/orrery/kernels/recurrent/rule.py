"""How long a recurrent mixer takes: a short convolution where it has one, then the recurrence.

Gated delta nets and Kimi's delta attention were measured as vLLM, SGLang and TensorRT-LLM run them; Mamba and
lightning attention borrow the gated delta net's constants, whose chunked scan they share, and say so. Constants are
found for the kind and engine asked for, then for the kind by any engine, then for its kin. [yang-2024], [dao-2024]
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.columns import flat_columns, timing
from orrery.kernels.ops import Recurrent, Timing
from orrery.kernels.recurrent import _kernel as kernel
from orrery.kernels.resolve import widened
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

DELTA, KIMI = "gated-delta-net", "kimi-delta"
KINDS = (DELTA, KIMI)
"""Kinds of recurrence that were measured; the first serves kinds that were not."""

ENGINES = ("vllm", "sglang", "tensorrt-llm")
"""Engines whose kernels serve an engine that has none of its own: vLLM's and SGLang's come from the same libraries."""

ANY = "any"
"""The convolution is the same for every kind."""


def calibration(op: Recurrent, device: Device, engine: str = "") -> Calibration:
    """The constants of the recurrence, and where they come from."""
    return _find("recurrence", op.kind, op.is_decode, device, engine)


@lru_cache(maxsize=1024)
def _find(part: str, kind: str, is_decode: bool, device: Device, engine: str) -> Calibration:
    name = f"{part}_{'decode' if is_decode else 'prefill'}"
    kinds = (ANY,) if part == "convolution" else dict.fromkeys((kind, *KINDS))
    for known in kinds:
        found = [c for e in dict.fromkeys((engine, *ENGINES)) if (c := device.calibrations.get((name, known, e)))]
        for best in sorted(found, key=lambda c: c.origin != "device"):
            is_other = bool(engine) and best.engine != engine
            return widened(best, is_kin=known not in (kind, ANY), is_other_engine=is_other)
    raise OutOfRange(f"Nothing was measured that is like the {name} of {kind} on {device.name}.")


@lru_cache(maxsize=1024)
def _ready(kind: str, is_decode: bool, format: str, device: Device, engine: str) -> tuple[Floats, Floats, Floats]:
    """The constants of both kernels, and the machine's rates."""
    recurrence = _find("recurrence", kind, is_decode, device, engine).constants
    convolution = _find("convolution", kind, is_decode, device, engine).constants
    names = kernel.DECODE if is_decode else kernel.PREFILL
    try:
        flops = device.peak_flops_per_s(get_format(format).rates)[1]
    except OutOfRange:
        flops = device.vector_flops_per_s
    return (
        np.array([recurrence[name] for name in names]),
        np.array([convolution[name] for name in kernel.CONVOLUTION]),
        np.array(
            [
                flops,
                device.memory_bandwidth_bytes_per_s,
                max(device.num_compute_units, 1),
                device.last_level_cache_bytes,
            ]
        ),
    )


def predict(op: Recurrent, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    return timing(_columns(op, *_ready(op.kind, op.is_decode, op.format, device, engine)))


def _columns(op: Recurrent, recurrence: Floats, convolution: Floats, machine: Floats) -> Floats:
    """The kernel's columns, first axis; further axes are the op's broadcast shape."""
    fixed = (float(op.state_bytes_per_element), op.is_decode, op.is_cold, recurrence, convolution, machine)
    sizes = (op.tokens, op.sequences, op.state_elements, op.flops_per_token, op.width, op.num_heads, op.conv_elements)
    if all(isinstance(x, int | float) for x in sizes):
        return kernel.scalar(*(float(x) for x in sizes), *fixed)
    shape, flat = flat_columns(sizes, np.float64)
    out = np.empty((flat[0].size, kernel.COLUMNS))
    kernel.many(*flat, *fixed, out)
    return out.T.reshape(kernel.COLUMNS, *shape)
