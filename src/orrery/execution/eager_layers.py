"""A model's layers as an eager framework launches them: products, attention, and many passes over activations.

Products and attention take what the kernels floor says; what a layer streams besides (norms, rotation, additions,
copies) is dealt out evenly over the kernels that are left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict
from orrery.kernels.elementwise.rule import calibration
from orrery.kernels.ops import AttentionPrefill, Gemm
from orrery.models.model import Model, SoftmaxAttention

FORMAT, WORD_BYTES = "bf16", 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerLayer:
    """A framework's launches for one layer, and its passes over activations as wide as the model."""

    num_kernels: int
    num_stream_passes: float


DECODER = EagerLayer(num_kernels=41, num_stream_passes=83)
"""Counted in the common library's decoder: two norms of eight, five products and three, rotation of ten, two repeats,
attention, a copy, two additions, two of the gate."""

ENCODER = EagerLayer(num_kernels=13, num_stream_passes=20)
"""Counted in the same library's encoder: six products, attention, a copy, two additions, two norms, the activation."""


def layer_of(model: Model) -> EagerLayer:
    """A decoder's where attention is causal, else an encoder's."""
    mixers = [block.mixer for block in model.blocks]
    if not all(isinstance(mixer, SoftmaxAttention) for mixer in mixers):
        raise OutOfRange(f"{model.name}: layers are counted for models whose every layer is softmax attention.")
    return DECODER if any(isinstance(m, SoftmaxAttention) and m.is_causal for m in mixers) else ENCODER


def kernels_s(
    model: Model, device: Device, batch: int, tokens: int, layer: EagerLayer, engine: str = ""
) -> NDArray[np.float64]:
    """All layers, kernel by kernel, over whole prompts."""
    measured = calibration("add", device).constants
    every: list[NDArray[np.float64]] = []
    for block in model.blocks:
        mixer = block.mixer
        if not isinstance(mixer, SoftmaxAttention):
            raise OutOfRange(f"{model.name}: layers are counted for models whose every layer is softmax attention.")
        products = [Gemm(m=batch * tokens, n=x.out_features, k=x.in_features, format=FORMAT) for x in block.linears]
        attention = AttentionPrefill(
            batch=batch,
            query_tokens=tokens,
            context_tokens=tokens,
            num_heads=mixer.num_heads,
            format=FORMAT,
            num_kv_heads=mixer.num_kv_heads,
            head_size=mixer.head_size,
            kv_format=FORMAT,
            is_causal=mixer.is_causal,
        )
        busy = [float(predict(op, device, engine).time_s) for op in (*products, attention)]
        moved = layer.num_stream_passes * batch * tokens * model.hidden_size * WORD_BYTES
        stream_s = moved / (measured["bandwidth_frac"] * device.memory_bandwidth_bytes_per_s)
        others = max(layer.num_kernels - len(busy), 1)
        every += [np.array([*busy, *([stream_s / others] * others)])] * block.count
    return np.concatenate(every)
