"""Choice of the constants that an attention kernel is predicted with, and of the arithmetic that it runs in.

A class of work is called ``<compute>+<cache>``, such as ``bf16+fp8``. What was measured on the device or its generation
comes before what was pooled over everybody; then the nearest format, then the nearest engine, then the device itself
before its siblings: one engine's kernel on a sibling says more than another engine's on this very device.

An 8-bit cache may be read by a kernel that computes in 8 bits, too; where only that was measured (Hopper, Blackwell),
that is what such an engine runs, and what is predicted.
"""

from dataclasses import dataclass
from functools import lru_cache

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.resolve import ENGINES, unhindered, widened
from orrery.numerics.format import Format
from orrery.numerics.registry import get_format

_ORIGINS = ("device", "generation", "any")


ALIKE: dict[str, tuple[str, ...]] = {"vllm": ("sglang",), "sglang": ("vllm",), "pytorch": ("vllm",)}
"""Engines that call the same attention library (FlashAttention, as the tables' ``kernel`` column says of both)."""

PRODUCTS = tuple(f"product_{size}_frac" for size in (64, 128, 192, 256))
"""Shares of the matrix peak that a prefill kernel reaches, by the size of its heads."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """The constants, and what the device does with these formats."""

    calibration: Calibration
    peak_flops_per_s: float
    element_bytes: float
    kv_element_bytes: float


@lru_cache(maxsize=4096)
def choose(device: Device, op: str, format: str, kv_format: str, engine: str) -> Choice:
    """The nearest calibration of ``op``, widened where it is borrowed, and the roofs that go with it."""
    compute, kv = get_format(format), get_format(kv_format)
    keys = _keys(device, compute, kv)
    engines = (engine, *ALIKE.get(engine, ()), *ENGINES)
    found = [
        (calibration.origin == "any", k, e, _ORIGINS.index(calibration.origin), calibration)
        for k, key in enumerate(keys)
        for e, other in enumerate(engines)
        if (calibration := device.calibrations.get((op, key, other))) and not calibration.law
    ]
    if not found:
        raise OutOfRange(f"Nothing was measured that is like {op} in {keys[0]} on {device.name}.")
    _, rank, _, _, calibration = min(found, key=lambda f: f[:4])
    runs_in = get_format(keys[rank].split("+")[0])
    if runs_in.bytes_per_element >= 2 and compute.bytes_per_element >= 2:
        runs_in = compute
    is_other_engine = bool(engine) and calibration.engine != engine
    return Choice(
        calibration=unhindered(
            widened(calibration, is_kin=rank > 0, is_other_engine=is_other_engine), device, runs_in.name, PRODUCTS
        ),
        peak_flops_per_s=matrix_peak_flops_per_s(device, runs_in),
        element_bytes=runs_in.bytes_per_element,
        kv_element_bytes=kv.bytes_per_element,
    )


def matrix_peak_flops_per_s(device: Device, number: Format) -> float:
    """Dense matrix peak of the first rate that the device has; its vector rate where it has none."""
    try:
        return device.peak_flops_per_s(number.rates)[1]
    except OutOfRange:
        return device.vector_flops_per_s


def _keys(device: Device, compute: Format, kv: Format) -> list[str]:
    """Classes of work that could answer, nearest first."""
    has_narrow_units = "fp8" in device.dense_flops_per_s
    is_narrow = compute.bytes_per_element <= 1 and not compute.weight_only and has_narrow_units
    if kv.bytes_per_element <= 1:
        narrow = ["fp8+fp8"] if has_narrow_units else []
        wide = ["bf16+fp8"]
        return [*(narrow + wide if is_narrow else wide + narrow), "bf16+bf16"]
    return ["bf16+bf16"]
