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
    "nvfp4_weight_only": ("mxfp4_weight_only", "int4_weight_only", "bf16"),
    "int8": ("fp8", "bf16"),
    "int4_int4": ("int8", "fp8", "bf16"),
    "int8_weight_only": ("int4_weight_only", "bf16"),
    "ternary_weight_only": ("int4_weight_only", "int8_weight_only", "bf16"),
    "ternary_int8": ("int8", "fp8", "bf16"),
    "int4_weight_only": ("int8_weight_only", "bf16"),
}
"""Formats whose kernels are built most alike, nearest first."""

WEIGHTS_ALONE = ("int4_weight_only", "int8_weight_only", "bf16")
"""Formats nearest to plain integers of other widths that are unpacked beside 16-bit activations."""

ENGINES = ("tensorrt-llm", "vllm", "sglang", "aiter", "flashinfer", "nccl", "pytorch", "xla")
"""Engines whose measurements to trust when the one asked for has none, in order of how many rows stand behind them."""

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

LIBRARIES: dict[tuple[str, str], tuple[str, ...]] = {
    ("pytorch", "bf16"): ("vllm",),
    ("pytorch", "fp16"): ("vllm",),
    ("vllm", "fp8_block"): ("sglang",),
}
"""Engines that leave a format's products to the same library: vLLM calls PyTorch's, and as SGLang does DeepGEMM."""

OF_VENDOR: dict[str, tuple[str, ...]] = {"AMD": ("aiter",)}
"""Libraries whose kernels engines call on a vendor's devices: no pool of another vendor's devices says more of them."""

OTHER_ENGINE, OTHER_FORMAT = 1.3, 1.6
"""How much wider an interval becomes (log space); generation entries carry their own, of devices left out."""


@lru_cache(maxsize=4096)
def find(device: Device, op: str, format: str, engine: str = "") -> Calibration:
    """The constants for ``op`` in ``format`` on ``device``; OutOfRange where nothing kin was ever measured."""
    ranked = _experts_ranked(device, format, engine) if op == "moe" else _ranked(device, op, format, engine)
    if not ranked:
        raise OutOfRange(f"Nothing was measured that is like {op} in {format} on {device.name}.")
    _, found = min(ranked, key=lambda r: r[0])
    return widened(
        found, is_kin=found.format != format, is_other_engine=bool(engine) and _differs(engine, found.engine)
    )


INTEGER_RATE = "int8"


def held_back_ratio(device: Device, format: str) -> float:
    """Rate of a format's products over what units of this width could do: 1/2 of floats on GeForce cards, else 1.

    Matrix units multiply twice as many elements of half the width, floats or integers. GeForce cards have the units of
    their full siblings, but sum products in 32-bit floats at half that rate; their integers run at the full one.
    """
    number = get_format(format)
    rate = next((r for r in number.rates if r in device.dense_flops_per_s), "")
    integers = device.dense_flops_per_s.get(INTEGER_RATE, 0.0)
    if number.kind != "float" or number.bytes_per_element < 1.0 or not rate or not integers:
        return 1.0
    return min(1.0, device.dense_flops_per_s[rate] * round(number.bytes_per_element) / integers)


def unhindered(found: Calibration, device: Device, format: str, names: tuple[str, ...]) -> Calibration:
    """Constants of siblings where the device's own products are held back: ``names`` are shares of the peak.

    What keeps a sibling from its peak (power, operands, instructions between products) takes as long beside products
    that are issued half as often, so it is a share of the sibling's rate, not of the device's own: the device reaches
    that rate or its own peak, whichever is less.
    """
    ratio = held_back_ratio(device, format) if found.origin == "generation" else 1.0
    if ratio > HELD_BACK:
        return found
    shares = {name: min(1.0, found.constants[name] / ratio) for name in names if name in found.constants}
    return replace(found, constants={**found.constants, **shares})


HELD_BACK = 0.75
"""A ratio above this is rounding in a data sheet: cards are held back by half."""


def _differs(requested: str, found: str) -> bool:
    """Whether constants are another maker's; a back end that names no caller is the same by any."""
    return requested != (found if "@" in requested else kernel_of(found))


def kernel_of(maker: str) -> str:
    """The kernel of ``kernel@caller``; an engine's name is its own."""
    return maker.partition("@")[0]


Ranked = list[tuple[tuple[int, ...], Calibration]]
"""Constants that could answer, each with how far they are from what is asked: the least comes first."""


def _ranked(device: Device, op: str, format: str, engine: str) -> Ranked:
    """Attention, products and the rest: by architecture and width, then by format, device and engine."""
    near = dict.fromkeys((engine, *LIBRARIES.get((engine, format), ()), *ENGINES))
    pooled = dict.fromkeys((*OF_VENDOR.get(device.vendor, ()), *near))
    return [
        ((_tier(found, format), rank, int(found.origin != "device"), place), found)
        for rank, name in enumerate(_kin(format))
        for is_pooled, engines in ((False, near), (True, pooled))
        for place, e in enumerate(engines)
        if (found := device.calibrations.get((op, name, e))) and not found.law
        if (found.origin == "any") == is_pooled
    ]


def _tier(found: Calibration, format: str) -> int:
    """0 for what its own architecture told of kernels as wide, 1 for what all told of them, 2 for other widths."""
    one, other = (int(8 * get_format(name).bytes_per_element) for name in (found.format, format))
    if one != other:
        return 2
    return int(found.origin == "any")


def _experts_ranked(device: Device, format: str, backend: str) -> Ranked:
    """Experts: the same kernels on relatives, and in a format as wide, come before other kernels on the device itself,
    because back ends differ by more than devices of one generation do, and than scales of 4 bits do."""
    makers = _makers(backend)
    origins = ("device", "generation", "any")
    found: Ranked = []
    for rank, name in enumerate(_kin(format)):
        for place, maker in enumerate(makers):
            if (one := device.calibrations.get(("moe", name, maker))) and not one.law:
                far, is_same = origins.index(one.origin), kernel_of(maker) == kernel_of(backend)
                is_near = is_same and far < 2
                tier = 0 if is_near and not rank else 1 if is_near and is_as_wide(name, format) else 2 + rank
                found.append(((tier, rank, far if is_near else far + 2, place), one))
    return found


def is_as_wide(one: str, other: str) -> bool:
    """Whether weights of two formats have as many bits, scales aside, and both or neither leave activations wide."""
    a, b = get_format(one), get_format(other)
    return int(8 * a.bytes_per_element) == int(8 * b.bytes_per_element) and a.weight_only == b.weight_only


def _makers(requested: str) -> tuple[str, ...]:
    """Back ends as engines call them, nearest first: ``triton@vllm``, then the same by others, then its kin."""
    backend, _, caller = requested.partition("@")
    callers = tuple(dict.fromkeys((caller if requested else ENGINES[0], *CALLERS)))
    kernels = dict.fromkeys((backend, *BACKEND_KIN.get(backend, ()), *BACKENDS))
    named = (name for k in kernels for name in (*(f"{k}@{c}" for c in callers), k))
    return tuple(dict.fromkeys((requested, *named, *ENGINES)))


def _kin(format: str) -> tuple[str, ...]:
    is_integer = get_format(format).weight_only and format.startswith(("int", "uint"))
    return (format, *KIN.get(format, WEIGHTS_ALONE if is_integer else ("bf16",)))


def widened(found: Calibration, *, is_kin: bool, is_other_engine: bool) -> Calibration:
    """``found`` with the wider spread of constants that are borrowed from kin, from another engine, or both."""
    factor = (OTHER_FORMAT if is_kin else 1.0) * (OTHER_ENGINE if is_other_engine else 1.0)
    if factor == 1.0:
        return found
    because = f"borrowed from {found.op} in {found.format} by {found.engine}"
    return replace(found, spread=found.spread.widened(factor, because), row_spread=one_for_all)
