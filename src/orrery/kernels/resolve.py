"""Which measured constants answer for an op: the exact ones, or the nearest kin, never in silence.

The order: what was measured in this format on this very device (by this engine, then by any), then on its relatives
(likewise), then the same for formats that are as wide and run on the same units; after these what was pooled over all
architectures, and last what was measured in formats of another width.
A calibration found by kinship has its interval widened and says whose constants it borrowed.
"""

from dataclasses import replace
from functools import lru_cache

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration, one_for_all
from orrery.hardware.device import Device
from orrery.numerics.registry import get_format

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

ENGINES = ("tensorrt-llm", "vllm", "sglang", "aiter", "flashinfer", "nccl", "pytorch")
"""Whose measurements to trust when the engine asked for has none, in order of how many rows stand behind them."""

LIBRARIES: dict[tuple[str, str], tuple[str, ...]] = {
    ("pytorch", "bf16"): ("vllm",), ("pytorch", "fp16"): ("vllm",), ("vllm", "fp8_block"): ("sglang",),
}  # fmt: skip
"""Engines that leave a format's products to the same library: vLLM calls PyTorch's, and as SGLang does DeepGEMM."""

OF_VENDOR: dict[str, tuple[str, ...]] = {"AMD": ("aiter",)}
"""Whose kernels engines call on a vendor's devices: no pool of another vendor's devices says more of them."""

OTHER_ENGINE, OTHER_FORMAT = 1.3, 1.6
"""How much wider an interval becomes (log space); generation entries carry their own, of devices left out."""


@lru_cache(maxsize=4096)
def find(device: Device, op: str, format: str, engine: str = "") -> Calibration:
    """The constants for ``op`` in ``format`` on ``device``; OutOfRange where nothing kin was ever measured."""
    kin = (format, *KIN.get(format, ("bf16",)))
    near = dict.fromkeys((engine, *LIBRARIES.get((engine, format), ()), *ENGINES))
    pooled = dict.fromkeys((*OF_VENDOR.get(device.vendor, ()), *near))
    ranked = [
        ((_tier(found, format), rank, found.origin != "device", place), found)
        for rank, name in enumerate(kin)
        for is_pooled, engines in ((False, near), (True, pooled))
        for place, e in enumerate(engines)
        if (found := device.calibrations.get((op, name, e))) and not found.law
        if (found.origin == "any") == is_pooled
    ]
    if not ranked:
        raise OutOfRange(f"Nothing was measured that is like {op} in {format} on {device.name}.")
    (_, rank, _, _), found = min(ranked, key=lambda r: r[0])
    return widened(found, is_kin=rank > 0, is_other_engine=bool(engine) and found.engine != engine)


def _tier(found: Calibration, format: str) -> int:
    """0 for what its own architecture told of kernels as wide, 1 for what all told of them, 2 for other widths."""
    one, other = (int(8 * get_format(name).bytes_per_element) for name in (found.format, format))
    if one != other:
        return 2
    return int(found.origin == "any")


def widened(found: Calibration, *, is_kin: bool, is_other_engine: bool) -> Calibration:
    """``found`` with the wider spread of constants that are borrowed from kin, from another engine, or both."""
    factor = (OTHER_FORMAT if is_kin else 1.0) * (OTHER_ENGINE if is_other_engine else 1.0)
    if factor == 1.0:
        return found
    because = f"borrowed from {found.op} in {found.format} by {found.engine}"
    return replace(found, spread=found.spread.widened(factor, because), row_spread=one_for_all)
