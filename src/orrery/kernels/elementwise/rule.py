"""How long element-wise work takes: what each kind moves, and the share of the bandwidth that it reaches.

``overhead_s`` of the answer is what launching adds to the stream: an engine that replays a graph puts its own there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import UnknownName
from orrery.hardware.calibration import Calibration, one_for_all
from orrery.hardware.device import Device
from orrery.kernels.columns import timing
from orrery.kernels.elementwise import _kernel as kernel
from orrery.kernels.ops import Elementwise, Timing
from orrery.kernels.resolve import OTHER_FORMAT, find
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Cost of one element of ``width``: 16-bit words moved, 32-bit words moved, operations, and the measurement's
    source.
    """

    moves: float  # 16-bit words read and written
    moves_32bit: float = 0.0
    flops: float  # rough: these kernels are never bound by arithmetic
    measured_as: str = ""  # another kind whose constants serve where this one was never measured
    writes_format: bool = False  # also writes the element in the op's format


KINDS: Mapping[str, Kind] = {
    "norm": Kind(moves=2, flops=5),
    "rope": Kind(moves=2, flops=4),
    "gated_activation": Kind(moves=3, flops=6),  # width counts what leaves: two come in
    "add": Kind(moves=3, flops=1),
    "embedding": Kind(moves=2, flops=0),
    "softmax": Kind(moves=2, flops=8),
    "quantise": Kind(moves=1, flops=3, measured_as="add", writes_format=True),
    # hyper-connections: width counts all that moves (2 n + 1 of the hidden size, for n streams)
    "mhc_pre": Kind(moves=1, flops=4),
    "mhc_post": Kind(moves=1, flops=4),
    # logits in, turned to 32 bits and kept, then read for the softmax and again for the draw
    "sample": Kind(moves=1, moves_32bit=3, flops=12, measured_as="softmax"),
}

SIXTEEN_BIT_BYTES, THIRTY_TWO_BIT_BYTES = 2.0, 4.0

MEASURED_FORMAT, MEASURED_ENGINE = "bf16", "vllm"
"""All measured tables are 16-bit kernels of vLLM's or PyTorch's making; the time follows the bytes."""


def _kind(name: str) -> Kind:
    if (kind := KINDS.get(name)) is None:
        raise UnknownName("element-wise kind", name, KINDS)
    return kind


def calibration(kind: str, device: Device, engine: str = "") -> Calibration:
    """The constants for a kind on a device; where borrowed from another kind, a wider interval that says so."""
    source = _kind(kind).measured_as
    if own := device.calibrations.get((f"elementwise_{kind}", MEASURED_FORMAT, engine)):
        return own
    found = find(device, f"elementwise_{source or kind}", MEASURED_FORMAT, MEASURED_ENGINE)
    if not source:
        return found
    spread = found.spread.widened(OTHER_FORMAT, f"{kind} was never measured; borrowed from {source}")
    return replace(found, spread=spread, row_spread=one_for_all)


def bytes_each(kind: str, format: str) -> float:
    """Bytes that one element of ``width`` moves."""
    known = _kind(kind)
    written = get_format(format).bytes_per_element if known.writes_format else 0.0
    narrow = max(SIXTEEN_BIT_BYTES, get_format(format).bytes_per_element)
    return known.moves * narrow + known.moves_32bit * THIRTY_TWO_BIT_BYTES + written


@lru_cache(maxsize=4096)
def _ready(device: Device, kind: str, format: str, engine: str) -> tuple[float, float, Floats, Floats]:
    constants = constants_vector(calibration(kind, device, engine).constants)
    return bytes_each(kind, format), _kind(kind).flops, constants, machine_vector(device)


def constants_vector(constants: Mapping[str, float]) -> Floats:
    """The fitted constants in the kernel's order."""
    return np.array([constants[name] for name in kernel.CONSTANTS])


def machine_vector(device: Device) -> Floats:
    """Vector rate, bandwidth and cache."""
    return np.array(
        [
            device.vector_flops_per_s,
            device.memory_bandwidth_bytes_per_s,
            max(device.last_level_cache_bytes, 1.0),
        ]
    )


def predict(op: Elementwise, device: Device, engine: str = "") -> Timing:
    """Time of ``op`` on ``device``; engines share the same kernels' measurements unless one was measured itself."""
    return timing(_columns(op, *_ready(device, op.kind, op.format, engine)))


def _columns(op: Elementwise, bytes_each: float, flops_each: float, constants: Floats, machine: Floats) -> Floats:
    """The kernel's columns, first axis; further axes are the op's broadcast shape."""
    if isinstance(op.tokens, int) and isinstance(op.width, int):
        return kernel.scalar(float(op.tokens * op.width), bytes_each, flops_each, constants, machine)
    elements = np.multiply(op.tokens, op.width, dtype=np.float64)
    out = np.empty((elements.size, kernel.COLUMNS))
    kernel.many(np.ascontiguousarray(elements).ravel(), bytes_each, flops_each, constants, machine, out)
    return out.T.reshape(kernel.COLUMNS, *elements.shape)
