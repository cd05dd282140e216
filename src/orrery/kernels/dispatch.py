"""From an op to the rule that answers it: the op's class decides, nothing falls back in silence."""

from collections.abc import Callable
from typing import Any

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
from orrery.numerics.registry import get_format


def _prompts(op: AttentionPrefill, device: Device, engine: str) -> Timing:
    return (encoder.predict if encoder.serves(op) else attention.predict_prefill)(op, device, engine)


def _prompts_calibration(op: AttentionPrefill, device: Device, engine: str) -> Calibration:
    return (encoder if encoder.serves(op) else attention_prefill).calibration(op, device, engine)


_RULES: dict[type, Callable[[Any, Device, str], Timing]] = {
    Gemm: gemm.predict,
    AttentionPrefill: _prompts,
    AttentionDecode: attention.predict_decode,
    LatentPrefill: latent.predict_prefill,
    LatentDecode: latent.predict_decode,
    LatentAbsorb: latent.predict_absorb,
    MoE: moe.predict,
    Elementwise: elementwise.predict,
    Recurrent: recurrent.predict,
}


def predict(op: Op, device: Device, engine: str = "") -> Timing:
    """How long ``op`` takes on ``device`` with the kernels of ``engine``; arrays of the op's broadcast shape."""
    if device.kind == "cpu" and host.serves(op, device, engine):
        return host.predict(op, device, engine)
    return _RULES[type(op)](op, device, engine)


def _product(op: Gemm | MoE, device: Device, engine: str) -> Calibration:
    return resolve.find(device, "gemm" if isinstance(op, Gemm) else "moe", get_format(op.format).name, engine)


def _elementwise(op: Elementwise, device: Device, engine: str) -> Calibration:
    return elementwise_rule.calibration(op.kind, device, engine)


_CALIBRATIONS: dict[type, Callable[[Any, Device, str], Calibration]] = {
    Gemm: _product,
    AttentionPrefill: _prompts_calibration,
    AttentionDecode: attention_decode.calibration,
    LatentPrefill: latent_prefill.calibration,
    LatentDecode: latent_decode.calibration,
    LatentAbsorb: latent_absorb.calibration,
    MoE: _product,
    Elementwise: _elementwise,
    Recurrent: recurrent.calibration,
}


def calibration(op: Op, device: Device, engine: str = "") -> Calibration:
    """The constants that ``predict`` uses for ``op``, and where they come from."""
    if device.kind == "cpu" and host.serves(op, device, engine):
        return host.calibration(op, device, engine)
    return _CALIBRATIONS[type(op)](op, device, engine)


def spread(op: Op, device: Device, engine: str = "") -> Spread:
    """The relative error of ``predict`` for ``op``: of this very answer if it is one, and that was measured."""
    found = calibration(op, device, engine)
    if found.row_spread() is None:
        return found.spread
    rows = row_spreads(op, predict(op, device, engine), device, found)
    return found.spread if rows is None or rows.low_80_ratio.size != 1 else rows.only()


def spreads(op: Op, timing: Timing, device: Device, engine: str = "") -> Spread | Spreads:
    """The relative error of ``timing``, which ``predict`` gave for ``op``: row by row where that was measured."""
    found = calibration(op, device, engine)
    rows = row_spreads(op, timing, device, found)
    return found.spread if rows is None else rows
