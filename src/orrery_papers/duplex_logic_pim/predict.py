"""Duplex: layers that go to the processor below the memory, to the device's own, or to both."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Part
from orrery.execution.layout import Deployment
from orrery.execution.step import step
from orrery.hardware.roofs import Roofs, shared_s, takeover_flops_per_byte
from orrery.kernels import predict as timed
from orrery.kernels.ops import AttentionDecode
from orrery.models.model import SoftmaxAttention
from orrery_papers.shared.passes import decodes, pass_of, prompts
from orrery_papers.shared.setup import deployment

SHARED = ("moe", "AttentionDecode")
"""Operations that both processors may take: experts and heads can be dealt out."""
CONTEXT_TOKENS = 1024  # of the intensity of attention: long enough that queries and results hardly count


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput first, for the sweep; then operations a byte."""
    setup = paper.setups["device"]
    d = deployment(setup)
    cases = [
        (batch, tokens, *gain(d, setup, int(batch), int(tokens)))
        for batch in setup.numbers("batches_swept")
        for tokens in setup.numbers("input_tokens_swept")
    ]
    batch, tokens, best, words = max(cases, key=lambda case: case[2])
    yield Prediction(
        claim="throughput",
        predicted=best,
        because=f"best of {len(cases)} cases, {batch:g} sequences of {tokens:g} + {tokens:g} tokens: {words}",
        differs="Mixtral alone is run; the logic die's rates are recalled",
    )
    near, far = processors(d, setup)
    yield Prediction(
        claim="attention-intensity",
        predicted=attention_intensity(d),
        because=f"one new token of {d.model.name} against {CONTEXT_TOKENS} cached ones; heads share keys and values",
    )
    yield Prediction(
        claim="logic-intensity",
        predicted=takeover_flops_per_byte(near, far),
        because=f"ridge at {near.ridge_flops_per_byte:.3g}; from here on the device's own processor is faster",
    )


def processors(d: Deployment, setup: Setup) -> tuple[Roofs, Roofs]:
    """Below the memory, and the device's own."""
    device = d.cluster.device
    own = device.memory_bandwidth_bytes_per_s
    return (
        Roofs(flops_per_s=setup.number("near_flops_per_s"), bytes_per_s=setup.number("near_bandwidth_ratio") * own),
        Roofs(flops_per_s=device.dense_flops_per_s["fp16"], bytes_per_s=own),
    )


def gain(d: Deployment, setup: Setup, batch: int, tokens: int) -> tuple[float, str]:
    """Tokens a second over the GPU's: a step that answers, and its part of the prompts, which change nothing."""
    done = step(d, decodes(np.array([batch]), np.array([tokens + tokens // 2])))
    before_s = float(done.time_s[0])
    saved = {
        p.name: float(p.time_s[0]) * (1.0 - quicker(p, *processors(d, setup))) for p in done.parts if p.op in SHARED
    }
    prompt_s = float(pass_of(d, prompts(np.array([tokens]))).total_s[0]) * batch / tokens
    after_s = before_s - sum(saved.values())
    words = ", ".join(f"{name} less {saved_s * 1e3:.3g} ms" for name, saved_s in saved.items())
    description = f"{words} of a step of {before_s * 1e3:.3g} ms beside {prompt_s * 1e3:.3g} ms of prompts"
    return (before_s + prompt_s) / (after_s + prompt_s), description


def quicker(p: Part, near: Roofs, far: Roofs) -> float:
    """Share of its time that a part still takes when both processors are at it."""
    flops, moved = p.work(0)
    return shared_s(near, far, flops, moved) / far.time_s(flops, moved) if moved else 1.0


def attention_intensity(d: Deployment) -> float:
    """Operations a byte of one layer's attention of one new token."""
    mixer = d.model.blocks[0].mixer
    assert isinstance(mixer, SoftmaxAttention)
    op = AttentionDecode(
        batch=1,
        context_tokens=CONTEXT_TOKENS,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        head_size=mixer.head_size,
        format="fp16",
        kv_format="fp16",
    )
    timing = timed(op, d.cluster.device)
    return float(timing.flops / timing.bytes)
