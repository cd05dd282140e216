"""Which measured constants answer for an op: the exact ones, or the nearest kin, never in silence.

The order: what was measured on this very device (by this engine, then by any), what was measured on its relatives
(likewise), and then the same again for formats that run on the same units.
A calibration found by kinship has its interval widened and says whose constants it borrowed.
"""

from dataclasses import replace
from functools import lru_cache

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration, one_for_all
from orrery.hardware.device import Device

KIN: dict[str, tuple[str, ...]] = {
    "fp16": ("bf16",),
    "bf16": ("fp16",),
    "fp32": ("tf32", "bf16"),
    "tf32": ("bf16",),
    "fp8": ("fp8_block", "int8", "bf16"),
    "fp8_block": ("fp8", "int8", "bf16"),
    "mxfp8": ("fp8_block", "fp8", "bf16"),
    "nvfp4": ("fp8", "bf16"),
    "mxfp4": ("nvfp4", "fp8", "bf16"),
    "mxfp4_mxfp8": ("nvfp4", "fp8", "mxfp4_weight_only", "bf16"),
    "mxfp4_weight_only": ("int4_weight_only", "bf16"),
    "int8": ("fp8", "bf16"),
    "int4_int4": ("int8", "fp8", "bf16"),
    "int8_weight_only": ("int4_weight_only", "bf16"),
    "int4_weight_only": ("int8_weight_only", "bf16"),
}
"""Formats whose kernels are built most alike, nearest first."""

ENGINES = ("tensorrt-llm", "vllm", "sglang", "flashinfer", "nccl", "pytorch")
"""Whose measurements to trust when the engine asked for has none, in order of how many rows stand behind them."""

BACKENDS = ("triton", "cutlass", "trtllm-gen", "marlin", "triton-kernels", "deepgemm", "aiter", "xpu")
"""Kernels of experts in the same order. Their constants are named for the kernel and the engine that calls it,
``triton@vllm``: the same kernel waits for another wrapper, and runs with other tiles, in another engine."""

BACKEND_KIN: dict[str, tuple[str, ...]] = {
    "cutlass": ("trtllm-gen", "triton"),
    "trtllm-gen": ("cutlass", "triton"),
    "cutedsl": ("trtllm-gen", "cutlass"),
    "deepgemm": ("triton", "cutlass"),
    "marlin": ("triton-kernels", "triton"),
    "triton-kernels": ("marlin", "triton"),
    "aiter": ("triton",),
    "xpu": ("triton",),
}
"""Kernels of experts that are built most alike, nearest first."""

CALLERS = ("vllm", "sglang", "tensorrt-llm", "aiter")
"""Engines whose calls of such kernels were measured."""

SAME_LIBRARY: dict[str, tuple[str, ...]] = {"pytorch": ("vllm",)}
"""Engines that leave their products to the same library: vLLM calls PyTorch's."""

OTHER_ENGINE, OTHER_FORMAT = 1.3, 1.6
"""How much wider an interval becomes (log space); generation entries carry their own, of devices left out."""


@lru_cache(maxsize=4096)
def find(device: Device, op: str, format: str, engine: str = "") -> Calibration:
    """The constants for ``op`` in ``format`` on ``device``; OutOfRange where nothing kin was ever measured."""
    for rank, kin in enumerate((format, *KIN.get(format, ("bf16",)))):
        known = [c for e in _makers(op, engine) if (c := device.calibrations.get((op, kin, e))) and not c.law]
        for found in sorted(known, key=lambda c: _distance(op, engine, c)):
            return widened(found, is_kin=rank > 0, is_other_engine=bool(engine) and _differs(engine, found.engine))
    raise OutOfRange(f"Nothing was measured that is like {op} in {format} on {device.name}.")


def _differs(asked: str, found: str) -> bool:
    """Whether constants are another maker's; a back end without a caller is the same by any."""
    return asked != (found if "@" in asked else found.partition("@")[0])


def _makers(op: str, engine: str) -> tuple[str, ...]:
    """Whose kernels to look for, nearest first: engines, or for experts back ends as engines call them."""
    if op != "moe":
        return tuple(dict.fromkeys((engine, *SAME_LIBRARY.get(engine, ()), *ENGINES)))
    backend, _, caller = engine.partition("@")
    kernels = dict.fromkeys((backend, *BACKEND_KIN.get(backend, ()), *BACKENDS))
    callers = tuple(dict.fromkeys((caller, *CALLERS)))
    return (engine, *(name for k in kernels for name in (*(f"{k}@{c}" for c in callers), k)), *ENGINES)


def _distance(op: str, engine: str, found: Calibration) -> int:
    """What was measured on the device itself comes first. For experts the same kernels on its relatives come before
    other kernels on itself, because back ends differ by more than devices of one generation do."""
    place = ("device", "generation", "any").index(found.origin)
    if op != "moe":
        return min(place, 1)
    is_same = found.engine.partition("@")[0] == engine.partition("@")[0]
    return place if is_same and place < 2 else place + 2


def widened(found: Calibration, *, is_kin: bool, is_other_engine: bool) -> Calibration:
    """``found`` with the wider spread of constants that are borrowed from kin, from another engine, or both."""
    factor = (OTHER_FORMAT if is_kin else 1.0) * (OTHER_ENGINE if is_other_engine else 1.0)
    if factor == 1.0:
        return found
    because = f"borrowed from {found.op} in {found.format} by {found.engine}"
    return replace(found, spread=found.spread.widened(factor, because), row_spread=one_for_all)
