"""From an op to the rule that answers it: the op's class decides, nothing falls back in silence."""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels import attention, elementwise, gemm, host, latent, moe, recurrent, resolve
from orrery.kernels.attention import decode as attention_decode
from orrery.kernels.attention import encoder
from orrery.kernels.attention import prefill as attention_prefill
from orrery.kernels.elementwise import rule as elementwise_rule
from orrery.kernels.latent import absorb as latent_absorb
from orrery.kernels.latent import decode as latent_decode
from orrery.kernels.latent import prefill as latent_prefill
from orrery.kernels.lowbit import mixed_served
from orrery.kernels.lowbit import served as one_bit
from orrery.kernels.near_memory import in_banks, placed
from orrery.kernels.ops import (
    AttentionDecode,
    AttentionPrefill,
    Elementwise,
    Gemm,
    LatentAbsorb,
    LatentDecode,
    LatentPrefill,
    MoE,
    Op,
    Recurrent,
    Timing,
)
from orrery.kernels.residual.error_range import Spreads
from orrery.kernels.residual.error_range import spreads as row_spreads
from orrery.numerics.mixed_widths import MIXED_PRODUCT
from orrery.numerics.registry import get_format


class Rule(NamedTuple):
    """How long an op takes, and the constants that say so."""

    predict: Callable[[Any, Device, str], Timing]
    calibration: Callable[[Any, Device, str], Calibration]


def _product(op: Gemm | MoE, device: Device, engine: str) -> Calibration:
    return resolve.find(device, "gemm" if isinstance(op, Gemm) else "moe", get_format(op.format).name, engine)


def _elementwise(op: Elementwise, device: Device, engine: str) -> Calibration:
    return elementwise_rule.calibration(op.kind, device, engine)


_ONE_BIT = Rule(one_bit.predict, one_bit.calibration)
_MIXED = Rule(mixed_served.predict, mixed_served.calibration)
_ENCODER = Rule(encoder.predict, encoder.calibration)
_HOST = Rule(host.predict, host.calibration)
_RULES: dict[type, Rule] = {
    Gemm: Rule(gemm.predict, _product),
    AttentionPrefill: Rule(attention.predict_prefill, attention_prefill.calibration),
    AttentionDecode: Rule(attention.predict_decode, attention_decode.calibration),
    LatentPrefill: Rule(latent.predict_prefill, latent_prefill.calibration),
    LatentDecode: Rule(latent.predict_decode, latent_decode.calibration),
    LatentAbsorb: Rule(latent.predict_absorb, latent_absorb.calibration),
    MoE: Rule(moe.predict, _product),
    Elementwise: Rule(elementwise.predict, _elementwise),
    Recurrent: Rule(recurrent.predict, recurrent.calibration),
}


def _rule(op: Op, device: Device, engine: str) -> Rule:
    if device.kind == "cpu" and host.serves(op, device, engine):
        return _HOST
    if isinstance(op, Gemm) and op.format.startswith("bipolar") and one_bit.serves(op):
        return _ONE_BIT
    if isinstance(op, Gemm) and op.format == MIXED_PRODUCT:
        return _MIXED
    if isinstance(op, AttentionPrefill) and not op.is_causal and encoder.serves(op):
        return _ENCODER
    return _RULES[type(op)]


def predict(op: Op, device: Device, engine: str = "") -> Timing:
    """How long ``op`` takes on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    return _timed(_rule(op, device, engine), op, device, engine)


MIN_ROWS, MAX_ROWS, MAX_RETAINED = 16, 4096, 512
"""Rows of an op whose answer is retained, and how many answers are (100 MB at the most). Searches, comparisons and the
tables of a simulation ask for the same kernels of one model on one device again and again."""


def _sizes(op: Op) -> list[Any]:
    return [getattr(op, name) for name in op.__dataclass_fields__]


def _hashable(size: Any) -> Any:
    return (size.shape, size.dtype.char, size.tobytes()) if hasattr(size, "tobytes") else size


class _OpKey:
    """An op as a key: equal where the class and every size are."""

    __slots__ = ("hashed", "key", "op")

    def __init__(self, op: Op) -> None:
        self.op = op
        self.key = (type(op), *map(_hashable, _sizes(op)))
        self.hashed = hash(self.key)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OpKey) and self.key == other.key


def _timed(rule: Rule, op: Op, device: Device, engine: str) -> Timing:
    arrays: list[NDArray[Any]] = [size for size in _sizes(op) if isinstance(size, np.ndarray)]
    if arrays and MIN_ROWS <= prod(np.broadcast_shapes(*(a.shape for a in arrays))) <= MAX_ROWS:
        return retained(rule, _OpKey(op), device, engine)
    return _worked_out(rule, op, device, engine)


@lru_cache(maxsize=MAX_RETAINED)
def retained(rule: Rule, key: _OpKey, device: Device, engine: str) -> Timing:
    """The answer, which many may share and nobody may change."""
    found = _worked_out(rule, key.op, device, engine)
    for f in fields(found):
        getattr(found, f.name).flags.writeable = False
    return found


def _worked_out(rule: Rule, op: Op, device: Device, engine: str) -> Timing:
    found = rule.predict(op, device, engine)
    if device.near_memory is None:
        return found
    return (in_banks if device.kind == "pim" else placed)(op, found, device.near_memory)


def calibration(op: Op, device: Device, engine: str = "") -> Calibration:
    """The constants that ``predict`` uses for ``op``, and where they come from."""
    return _rule(op, device, engine).calibration(op, device, engine)


def predict_with_constants(op: Op, device: Device, engine: str = "") -> tuple[Timing, Calibration]:
    """``predict`` and ``calibration`` of one op."""
    rule = _rule(op, device, engine)
    return _timed(rule, op, device, engine), rule.calibration(op, device, engine)


def spread(op: Op, device: Device, engine: str = "") -> Spread:
    """The relative error of ``predict`` for ``op``: of this very answer if it is one, and that was measured."""
    rule = _rule(op, device, engine)
    found = rule.calibration(op, device, engine)
    if found.row_spread() is None:
        return found.spread
    rows = row_spreads(op, _timed(rule, op, device, engine), device, found)
    return found.spread if rows is None or rows.low_80_ratio.size != 1 else rows.only()


def spreads(op: Op, timing: Timing, device: Device, engine: str = "") -> Spread | Spreads:
    """The relative error of ``timing``, which ``predict`` gave for ``op``: row by row where that was measured."""
    found = calibration(op, device, engine)
    rows = row_spreads(op, timing, device, found)
    return found.spread if rows is None else rows
