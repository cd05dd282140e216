"""Seconds of transcribing a batch of windows: the encoder once, then the decoder token by token.

    latency = stem and encoder + keys and values of the encoder's positions + tokens x decoder step

Kernels take what the kernels floor says, one after the other, in 16 bits; what streams between them (norms, additions,
activations) is charged as element-wise kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery import kernels
from orrery.hardware.device import Device
from orrery.kernels import energy
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, Op
from orrery.models.speech import CONVOLUTION_TAPS, FRAMES, POSITIONS, WIDENS, SpeechModel

FORMAT, WORD_BYTES = "fp16", 2.0

TOKENS_PER_S = 3.3
"""Tokens of a second of speech: 150 words a minute, 1.3 tokens each. Assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of a window's way: seconds, operations and bytes of all its kernels, and what takes the most of it."""

    name: str
    time_s: float
    flops: float
    moved_bytes: float
    bound_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcribed:
    """A batch of windows."""

    stages: tuple[Stage, ...]
    step_s: float  # one token of every window
    power_w: float

    @property
    def window_s(self) -> float:
        """Seconds of the batch, one window each."""
        return sum(stage.time_s for stage in self.stages)


def transcribe(model: SpeechModel, device: Device, batch: int, tokens: int) -> Transcribed:
    """A batch of windows that each end after so many tokens."""
    encoder = _stage("encoder", device, _encoder(model, batch))
    cross = _stage("keys and values", device, _cross(model, batch))
    middle = max(1, tokens // 2)
    step = _stage("decoder", device, _step(model, batch, middle))
    decoder = Stage(
        name="decoder",
        time_s=tokens * step.time_s,
        flops=tokens * step.flops,
        moved_bytes=tokens * step.moved_bytes,
        bound_by=step.bound_by,
    )
    stages = (encoder, cross, decoder)
    total_s = sum(stage.time_s for stage in stages)
    rates = sum(s.flops for s in stages) / total_s, sum(s.moved_bytes for s in stages) / total_s
    return Transcribed(
        stages=stages, step_s=step.time_s, power_w=float(np.squeeze(energy.power_w(device, FORMAT, *rates)))
    )


def _stage(name: str, device: Device, ops: Sequence[tuple[int, Op]]) -> Stage:
    time_s = flops = moved = 0.0
    by = dict[str, float]()
    for count, op in ops:
        found = kernels.predict(op, device)
        each_s = float(np.sum(found.time_s))
        time_s += count * each_s
        flops += count * float(np.sum(found.flops))
        moved += count * float(np.sum(found.bytes))
        roofs = {"compute": float(np.sum(found.compute_s)), "memory": float(np.sum(found.memory_s))}
        bound = "launch" if float(np.sum(found.overhead_s)) > each_s / 2.0 else max(roofs, key=roofs.__getitem__)
        by[bound] = by.get(bound, 0.0) + count * each_s
    return Stage(name=name, time_s=time_s, flops=flops, moved_bytes=moved, bound_by=max(by, key=by.__getitem__))


def _gemm(m: int, n: int, k: int) -> Gemm:
    return Gemm(m=m, n=n, k=k, format=FORMAT, quantises_input=False)


def _passes(rows: int, width: int, norms: int) -> list[tuple[int, Op]]:
    """Norms and residual additions, as many of each, and the activation of the feed-forward part."""
    return [
        (norms, Elementwise(kind="norm", tokens=rows, width=width)),
        (norms, Elementwise(kind="add", tokens=rows, width=width)),
        (1, Elementwise(kind="norm", tokens=rows, width=WIDENS * width)),
    ]


def _times(count: int, ops: Sequence[tuple[int, Op]]) -> list[tuple[int, Op]]:
    return [(count * each, op) for each, op in ops]


def _encoder(model: SpeechModel, batch: int) -> list[tuple[int, Op]]:
    d, rows = model.width, batch * POSITIONS
    stem: list[tuple[int, Op]] = [
        (1, _gemm(batch * FRAMES, d, CONVOLUTION_TAPS * model.mels)),
        (1, _gemm(rows, d, CONVOLUTION_TAPS * d)),
    ]
    attention = AttentionPrefill(
        batch=batch,
        query_tokens=POSITIONS,
        context_tokens=POSITIONS,
        num_heads=model.num_heads,
        num_kv_heads=model.num_heads,
        head_size=model.head_size,
        format=FORMAT,
        kv_format=FORMAT,
        is_causal=False,
    )
    products = [(4, _gemm(rows, d, d)), (1, _gemm(rows, WIDENS * d, d)), (1, _gemm(rows, d, WIDENS * d))]
    return stem + _times(model.encoder_layers, [*products, (1, attention), *_passes(rows, d, 2)])


def _cross(model: SpeechModel, batch: int) -> list[tuple[int, Op]]:
    return _times(model.decoder_layers, [(2, _gemm(batch * POSITIONS, model.width, model.width))])


def _step(model: SpeechModel, batch: int, context: int) -> list[tuple[int, Op]]:
    d = model.width
    products = [(6, _gemm(batch, d, d)), (1, _gemm(batch, WIDENS * d, d)), (1, _gemm(batch, d, WIDENS * d))]
    layer = [*products, (1, _attends(model, batch, context)), (1, _attends(model, batch, POSITIONS))]
    head: list[tuple[int, Op]] = [
        (1, _gemm(batch, model.vocab, d)),
        (1, Elementwise(kind="sample", tokens=batch, width=model.vocab)),
    ]
    return _times(model.decoder_layers, [*layer, *_passes(batch, d, 3)]) + head


def _attends(model: SpeechModel, batch: int, context: int) -> AttentionDecode:
    return AttentionDecode(
        batch=batch,
        context_tokens=context,
        num_heads=model.num_heads,
        num_kv_heads=model.num_heads,
        head_size=model.head_size,
        format=FORMAT,
        kv_format=FORMAT,
    )
