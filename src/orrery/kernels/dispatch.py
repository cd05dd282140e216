"""From an op to the rule that answers it: the op's class decides, nothing falls back in silence."""

from collections.abc import Callable
from typing import Any

from orrery.hardware.device import Device
from orrery.kernels import attention, elementwise, gemm, latent, moe, recurrent
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

_RULES: dict[type, Callable[[Any, Device, str], Timing]] = {
    Gemm: gemm.predict,
    AttentionPrefill: attention.predict_prefill,
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
    return _RULES[type(op)](op, device, engine)
