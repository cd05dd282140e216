"""Seconds of transcribing a batch of windows: the encoder once, then the decoder token by token.

    latency = stem and encoder + keys and values of the encoder's positions + tokens x decoder step

Kernels take what the kernels floor says; what streams between them (norms, additions, activations) is charged as
element-wise kernels, as many as the runtime runs. The host launches them meanwhile, and is waited for where it is
slower.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orrery import kernels
from orrery.execution.speech_runtime import KERNELS_ALONE, SpeechRuntime
from orrery.hardware.device import Device
from orrery.kernels import energy
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, Op
from orrery.models.speech import CONVOLUTION_TAPS, FRAMES, MAX_TOKENS, POSITIONS, WIDENS, SpeechModel

FORMAT, WORD_BYTES = "fp16", 2.0
FLOAT_BYTES = 4.0

STEP_PASSES = 6.0
"""Three norms and three additions of a decoder layer."""

TOKENS_PER_S = 3.3
"""Tokens of a second of speech: 150 words a minute, 1.3 tokens each. Assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows of sound that run at once."""

    count: int
    tokens: float  # of a window on average
    beams: int = 1
    format: str = FORMAT

    @property
    def sequences(self) -> int:
        """Texts that a step continues."""
        return self.count * self.beams


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
    steps: float
    power_w: float

    @property
    def window_s(self) -> float:
        """Seconds of the batch, one window each."""
        return sum(stage.time_s for stage in self.stages)


def transcribe(
    model: SpeechModel, device: Device, windows: Windows, runtime: SpeechRuntime = KERNELS_ALONE
) -> Transcribed:
    """A batch of windows, by a runtime."""
    steps = runtime.tokens(windows.tokens, windows.count, MAX_TOKENS)
    encoder = _waiting(_stage("encoder", device, _encoder(model, windows, runtime)), runtime, model)
    cross = _stage("keys and values", device, _cross(model, windows))
    step = _launched(_stage("decoder", device, _step(model, windows, runtime, steps)), runtime, model, windows)
    decoder = Stage(
        name="decoder",
        time_s=steps * step.time_s,
        flops=steps * step.flops,
        moved_bytes=steps * step.moved_bytes,
        bound_by=step.bound_by,
    )
    stages = (encoder, cross, decoder)
    total_s = sum(stage.time_s for stage in stages)
    rates = sum(s.flops for s in stages) / total_s, sum(s.moved_bytes for s in stages) / total_s
    power_w = float(np.squeeze(energy.power_w(device, windows.format, *rates)))
    return Transcribed(stages=stages, step_s=step.time_s, steps=steps, power_w=power_w)


def _waiting(stage: Stage, runtime: SpeechRuntime, model: SpeechModel) -> Stage:
    """The encoder, or the host that launches it where that takes longer; after a graph, where one is made."""
    found = _at_least(stage, runtime.encoder_host_s(model.encoder_layers))
    return _after(found, runtime.encoder_graph_s(model.encoder_layers))


def _launched(stage: Stage, runtime: SpeechRuntime, model: SpeechModel, windows: Windows) -> Stage:
    """A decoder step beside the host that launches it, and what the host does between two steps."""
    between = replace(stage, time_s=stage.time_s + model.decoder_layers * runtime.layer_s)
    host_s = runtime.decoder_host_s(model.decoder_layers, windows.count, windows.beams)
    graph_s = runtime.decoder_graph_s(model.decoder_layers, windows.count, windows.beams)
    return _after(_at_least(between, host_s), graph_s + runtime.step_s)


def _after(stage: Stage, host_s: float) -> Stage:
    """A stage that begins when the host is done."""
    by = "host" if host_s > stage.time_s else stage.bound_by
    return replace(stage, time_s=stage.time_s + host_s, bound_by=by)


def _at_least(stage: Stage, host_s: float) -> Stage:
    return replace(stage, time_s=host_s, bound_by="host") if host_s > stage.time_s else stage


def _stage(name: str, device: Device, ops: Sequence[tuple[float, Op]]) -> Stage:
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


def _gemm(m: int, n: int, k: int, format: str) -> Gemm:
    return Gemm(m=m, n=n, k=k, format=format, quantises_input=False)


def _passes(rows: int, width: int, narrow: float, wide: float) -> list[tuple[float, Op]]:
    """Passes over features, half of them norms and half additions, and those of the feed-forward part."""
    return [
        (narrow / 2.0, Elementwise(kind="norm", tokens=rows, width=width)),
        (narrow / 2.0, Elementwise(kind="add", tokens=rows, width=width)),
        (wide, Elementwise(kind="norm", tokens=rows, width=WIDENS * width)),
    ]


def _times(count: int, ops: Sequence[tuple[float, Op]]) -> list[tuple[float, Op]]:
    return [(count * each, op) for each, op in ops]


def _encoder(model: SpeechModel, windows: Windows, runtime: SpeechRuntime) -> list[tuple[float, Op]]:
    d, rows, format = model.width, windows.count * POSITIONS, windows.format
    stem: list[tuple[float, Op]] = [
        (1, _gemm(windows.count * FRAMES, d, CONVOLUTION_TAPS * model.mels, format)),
        (1, _gemm(rows, d, CONVOLUTION_TAPS * d, format)),
    ]
    products = [(4.0, _gemm(rows, d, d, format))]
    products += [(1.0, _gemm(rows, WIDENS * d, d, format)), (1.0, _gemm(rows, d, WIDENS * d, format))]
    words = runtime.pass_bytes / WORD_BYTES
    passes = _passes(rows, d, words * runtime.num_narrow_passes, words * runtime.num_wide_passes)
    rounded = _rounding(model, 4 + 2 * WIDENS, runtime)
    layer = [*products, *_sees(model, windows, runtime), *passes, *rounded]
    return stem + _times(model.encoder_layers, layer)


def _sees(model: SpeechModel, windows: Windows, runtime: SpeechRuntime) -> list[tuple[float, Op]]:
    """Attention among a window's positions: fused, or as two products with their scores written and read between."""
    if runtime.fuses_attention:
        fused = AttentionPrefill(
            batch=windows.count,
            query_tokens=POSITIONS,
            context_tokens=POSITIONS,
            num_heads=model.num_heads,
            num_kv_heads=model.num_heads,
            head_size=model.head_size,
            format=FORMAT,
            kv_format=FORMAT,
            is_causal=False,
        )
        return [(1.0, fused)]
    rows, size = windows.count * model.num_heads * POSITIONS, model.head_size
    return [
        (1.0, _gemm(rows, POSITIONS, size, FORMAT)),
        (runtime.pass_bytes / WORD_BYTES, Elementwise(kind="softmax", tokens=rows, width=POSITIONS)),
        (1.0, _gemm(rows, size, POSITIONS, FORMAT)),
    ]


def _rounding(model: SpeechModel, squares: int, runtime: SpeechRuntime) -> list[tuple[float, Op]]:
    """Weights of a layer, as many squares of its width, read in 32 bits and written in 16: one and a half passes."""
    if not runtime.casts_weights:
        return []
    count = (FLOAT_BYTES + WORD_BYTES) / (2.0 * WORD_BYTES)
    return [(count, Elementwise(kind="norm", tokens=squares * model.width, width=model.width))]


def _cross(model: SpeechModel, windows: Windows) -> list[tuple[float, Op]]:
    product = _gemm(windows.count * POSITIONS, model.width, model.width, windows.format)
    return _times(model.decoder_layers, [(2.0, product)])


def _step(model: SpeechModel, windows: Windows, runtime: SpeechRuntime, steps: float) -> list[tuple[float, Op]]:
    d, rows, format = model.width, windows.sequences, windows.format
    products = [(6.0, _gemm(rows, d, d, format))]
    products += [(1.0, _gemm(rows, WIDENS * d, d, format)), (1.0, _gemm(rows, d, WIDENS * d, format))]
    heard = windows.count if runtime.shares_cross_keys else rows
    attention = [
        (1.0, _attends(model, rows, max(1, int(steps) // 2))),
        (1.0, _attends(model, heard, POSITIONS)),
    ]
    passes = _passes(rows, d, STEP_PASSES, 1.0)
    layer = [*products, *attention, *passes, *_rounding(model, 6 + 2 * WIDENS, runtime)]
    head: list[tuple[float, Op]] = [
        (1.0, _gemm(rows, model.vocab, d, format)),
        (1.0, Elementwise(kind="sample", tokens=rows, width=model.vocab)),
    ]
    return _times(model.decoder_layers, layer) + head


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
