"""Which arithmetic a linear layer really runs in, given its storage formats and the device.

Engines unpack what the device cannot multiply: FP8 weights on Ampere and 4-bit floats on Hopper become
weight-only kernels (Marlin and its kin), so the bytes stay small and the arithmetic is 16 bits wide.
"""

from dataclasses import replace
from functools import cache, lru_cache

from orrery.hardware.device import Device
from orrery.numerics.mixed_widths import MIXED_PRODUCT, MIXED_WIDTHS, WEIGHTS
from orrery.numerics.one_bit_pairs import pair_of
from orrery.numerics.registry import get_format

SIXTEEN_BIT_BYTES = 2.0
WEIGHT_ONLY_BY_BITS = ((2, "ternary_weight_only"), (4, "int4_weight_only"), (8, "int8_weight_only"))
"""Weight-only kernels by the bits that they move; a format takes the narrowest that is no narrower than itself."""


def dense_format(weights: str, activations: str, device: Device) -> str:
    """The same of a dense layer, whose bipolar operands meet bit by bit and whose activations may have blocks of two
    widths; experts have no such kernels."""
    if activations == MIXED_WIDTHS and weights == WEIGHTS:
        return MIXED_PRODUCT
    if not weights.startswith("bipolar"):
        return compute_format(weights, activations, device)
    pair = pair_of(get_format(weights).name, get_format(activations).name)
    return pair or compute_format(weights, activations, device)


def compute_format(weights: str, activations: str, device: Device) -> str:
    """The format name that the kernels floor is asked for."""
    native = frozenset(device.dense_flops_per_s)
    return _compute_format(get_format(weights).name, get_format(activations).name, native)


@cache
def _compute_format(weights: str, activations: str, native: frozenset[str]) -> str:
    stored, active = get_format(weights), get_format(activations)
    bits = round(stored.element_bits)
    if stored.weight_only or bits >= 16:
        return weights
    if active.element_bits >= 16 or not native & native_rates(weights):
        if weights.startswith("mxfp4"):
            return "mxfp4_weight_only"
        return next((name for most, name in WEIGHT_ONLY_BY_BITS if bits <= most), "bf16")
    if weights == "mxfp4" and active.element_bits == 8:
        return "mxfp4_mxfp8"
    return weights


@cache
def can_multiply(name: str, device: Device) -> bool:
    """Whether a device multiplies a format as it is stored; otherwise engines unpack it to 16 bits."""
    return not native_rates(name).isdisjoint(device.dense_flops_per_s)


def native_rates(weights: str) -> set[str]:
    """The rates that multiply a format as it is stored; mixed formats unpack to their 8-bit partner in registers."""
    stored = get_format(weights)
    bits = 8 if stored.kind == "mixed" else stored.element_bits
    return {rate for rate in stored.rates if get_format(rate).element_bits == bits}


@cache
def bytes_per_element(name: str) -> float:
    """Stored bytes of one element, scales included."""
    return get_format(name).bytes_per_element


def wide_bytes(activations: str) -> float:
    """Bytes of one element between layers: what is narrower is only so inside a product."""
    return max(SIXTEEN_BIT_BYTES, bytes_per_element(activations))


@cache
def is_16bit(name: str) -> bool:
    """Whether a storage format needs no quantised kernel."""
    return get_format(name).element_bits >= 16


def wide_format(device: Device) -> str:
    """The 16-bit format of a device: bf16 where it has it, else fp16."""
    rates = device.dense_flops_per_s
    return "bf16" if "bf16" in rates or "fp16" not in rates else "fp16"


def activations_for(weights: str, device: Device) -> str:
    """Weights that the device multiplies as stored take activations of the same format; unpacked ones 16 bits."""
    found = get_format(weights)
    if found.element_bits >= 16:
        return found.name
    if found.weight_only or not can_multiply(found.name, device):
        return wide_format(device)
    return found.name


WARP_LEVEL = frozenset({"marlin"})
"""Kernels made of the matrix instructions of one warp (mma.sync), which run on every generation."""

WARP_LEVEL_FRAC = {"hopper": 0.629, "blackwell": 0.25}
"""Share of the peak that such instructions reach, where others (wgmma, tcgen05) reach all of it. Hopper: the mean of
all mma in arXiv:2402.13499. Blackwell's server chips: Ampere's 1,024 multiply-adds a cycle and unit of 4,096;
FlashAttention-2, made of them, is measured at 362 and 391 TFLOP/s on B200 (meta-pytorch/tritonbench#171,
Dao-AILab/flash-attention#1589), 0.65 to 0.7 of what that makes, as on A100."""


@lru_cache(maxsize=256)
def as_multiplied_by(backend: str, format: str, device: Device) -> Device:
    """The device at the rate of a back end's matrix instructions, where it unpacks weights for them."""
    share = WARP_LEVEL_FRAC.get(device.generation, 1.0)
    if share == 1.0 or backend not in WARP_LEVEL or not get_format(format).weight_only:
        return device
    return replace(device, dense_flops_per_s={f: share * r for f, r in device.dense_flops_per_s.items()})
