"""Token mixers in a step: attention over a cache in its variants, and recurrent states."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil

import numpy as np

from orrery import kernels
from orrery.execution.batch import Batch, Ints, Part, part
from orrery.execution.choice import choices, kernels_for, mixer_kind
from orrery.execution.formats import bytes_per_element, is_16bit
from orrery.execution.layout import Deployment
from orrery.execution.shard import MixerShard
from orrery.kernels.attention.overlapped import waiting_s
from orrery.kernels.ops import (
    AttentionDecode,
    AttentionPrefill,
    LatentDecode,
    LatentPrefill,
    Op,
    Recurrent,
    Timing,
)
from orrery.models.model import CompressedAttention, LatentAttention, RecurrentMixer, SoftmaxAttention

INDEX_PEAK_FRAC, INDEX_BANDWIDTH_FRAC = 0.5, 0.8
"""Assumed share of its format's peak and of memory bandwidth that a sparse-attention indexer reaches (a plain
product)."""


def mixer_parts(
    deployment: Deployment, mixers: tuple[MixerShard, ...], batch: Batch, largest: Mapping[str, float]
) -> Iterator[Part]:
    """The parts of every mixer: its prompts, its decodes, and its indexer where it has one."""
    has_prompts, has_decodes = bool(batch.prompt_sequences.any()), bool(batch.decode_sequences.any())
    for m in mixers:
        if has_prompts:
            computed = _in_whole_tiles(deployment, m)
            yield _ask(deployment, m, _prompt_op(deployment, computed, batch), "prefill", largest)
        if has_decodes:
            yield _ask(deployment, m, _decode_op(deployment, m, batch), "decode", largest, 1 + batch.guesses)
        if not isinstance(m.mixer, RecurrentMixer) and m.mixer.index_heads:
            yield part("indexer", m.block, _index(deployment, m.mixer, batch), m.count, "indexer", m.mixer.index_format)


SPARSE_HEADS = {"hopper": 64, "blackwell": 128, "rubin": 128}
"""Heads that FlashMLA's sparse kernel computes at once: engines pad the heads of a rank to as many [SGLang 0.5.3 to
0.5.12, dsa_backend.py, _forward_flashmla_sparse; TensorRT-LLM 1.3, attention.py; vLLM 0.11, flashmla_sparse.py]."""


def _in_whole_tiles(deployment: Deployment, m: MixerShard) -> MixerShard:
    """The mixer with the heads that the kernel of its prompts computes."""
    kind = mixer_kind(m.mixer)
    tile = SPARSE_HEADS.get(deployment.cluster.device.generation, 1)
    if kind != "sparse-latent" or _backend(deployment, kind) != "flashmla":
        return m
    return replace(m, num_heads=tile * ceil(m.num_heads / tile))


def _backend(deployment: Deployment, kind: str) -> str:
    return choices(deployment, "attention", deployment.formats.kv, kind)[-1].backend


_OPS: dict[type, str] = {
    AttentionPrefill: "attention_prefill",
    AttentionDecode: "attention_decode",
    LatentPrefill: "mla_prefill",
    LatentDecode: "mla_decode",
}
"""Names of ops in calibrations."""

_FIXED = ("num_heads", "num_kv_heads", "head_size", "value_head_size", "window_tokens")


def _ask(
    deployment: Deployment, m: MixerShard, op: Op, phase: str, largest: Mapping[str, float], queries: int = 1
) -> Part:
    device = deployment.cluster.device
    engine = kernels_for(deployment, "attention", _OPS.get(type(op), ""), _backend(deployment, mixer_kind(m.mixer)))
    timing, calibration = kernels.predict_with_constants(op, device, engine)
    if isinstance(op, AttentionPrefill) and takes_turns(deployment):
        timing = replace(timing, time_s=timing.time_s + waiting_s(op, device))
    if queries > 1:
        timing = _verifying(timing, queries)
    kind = "recurrence" if isinstance(m.mixer, RecurrentMixer) else "attention"
    sizes = {name: float(size) for name in _FIXED if isinstance(size := getattr(op, name, None), int)}
    if phase == "prefill":
        sizes |= {
            "batch": largest["prompts"],
            "query_tokens": largest["prompt_tokens"],
            "context_tokens": largest["prompt_context"],
        }
    else:
        sizes |= {"batch": largest["decodes"], "context_tokens": largest["decode_context"]}
    return part(
        f"{kind} {phase}", m.block, timing, m.count, type(op).__name__, getattr(op, "format", ""), calibration, sizes
    )


def takes_turns(deployment: Deployment) -> bool:
    """Whether the attention that is asked for lets products and exponentials of prompts take turns, where the measured
    kernels overlap them."""
    device = deployment.cluster.device
    return device.kind == "gpu" and device.generation in deployment.backends.attention_in_turns_on


def _verifying(once: Timing, queries: int) -> Timing:
    """The decode kernel with so many tokens of each sequence: one reading of the cache, the arithmetic of all."""
    compute_s = queries * once.compute_s
    return replace(
        once,
        compute_s=compute_s,
        flops=queries * once.flops,
        time_s=np.maximum(once.time_s, compute_s + once.overhead_s),
    )


def _attention_formats(deployment: Deployment) -> tuple[str, str]:
    """Compute and cache formats: an 8-bit cache is multiplied in 8 bits where the device can."""
    kv = deployment.formats.kv
    if bytes_per_element(kv) == bytes_per_element("fp32"):
        return kv, kv
    if is_16bit(kv):
        return "bf16", "bf16"
    return ("fp8" if "fp8" in deployment.cluster.device.dense_flops_per_s else "bf16"), "fp8"


def _prompt_op(deployment: Deployment, m: MixerShard, batch: Batch) -> Op:
    mixer, (compute, kv) = m.mixer, _attention_formats(deployment)
    sequences, new, context = batch.prompt_sequences, batch.prompt_tokens, batch.prompt_context_tokens
    if isinstance(mixer, SoftmaxAttention):
        return AttentionPrefill(
            batch=sequences,
            query_tokens=new,
            context_tokens=context,
            num_heads=m.num_heads,
            num_kv_heads=m.num_kv_heads,
            head_size=mixer.head_size,
            value_head_size=mixer.value_head_size,
            format=compute,
            kv_format=kv,
            window_tokens=_reach(mixer),
            is_causal=mixer.is_causal,
        )
    if isinstance(mixer, LatentAttention):
        if mixer.top_tokens:
            # kernels that take a selection of fixed length compute its missing entries too, and mask them: the same as
            # if as many tokens had come before
            past = context + mixer.top_tokens if deployment.engine.computes_whole_selection else context
            return _sparse_prompt(m, sequences, new, past, _attended(mixer, past), compute, kv)
        return LatentPrefill(
            batch=sequences,
            query_tokens=new,
            context_tokens=context,
            num_heads=m.num_heads,
            format=compute,
            kv_format=kv,
            head_size=mixer.nope_head_size + mixer.rope_head_size,
            value_head_size=mixer.value_head_size,
        )
    if isinstance(mixer, CompressedAttention):
        return _sparse_prompt(m, sequences, new, context, _attended(mixer, context), compute, kv)
    return _recurrent(mixer, m, sequences * new, sequences, is_decode=False)


def _reach(mixer: SoftmaxAttention) -> int:
    """Tokens that a query looks at, at most: a window, a chunk, or an indexer's selection; 0 is everything."""
    return mixer.window_tokens or mixer.chunk_tokens or mixer.top_tokens


def _sparse_prompt(m: MixerShard, sequences: Ints, new: Ints, context: Ints, seen: Ints, compute: str, kv: str) -> Op:
    """Every prompt token attends to its own selection: as many decode-like queries as there are tokens."""
    return AttentionPrefill(
        batch=sequences,
        query_tokens=new,
        context_tokens=np.minimum(context, new + seen),
        num_heads=m.num_heads,
        num_kv_heads=1,
        head_size=_latent_size(m)[0],
        value_head_size=_latent_size(m)[1],
        format=compute,
        kv_format=kv,
        window_tokens=seen,
    )


def _decode_op(deployment: Deployment, m: MixerShard, batch: Batch) -> Op:
    mixer, (compute, kv) = m.mixer, _attention_formats(deployment)
    sequences, context = batch.decode_sequences, batch.decode_context_tokens
    if isinstance(mixer, SoftmaxAttention):
        return AttentionDecode(
            batch=sequences,
            context_tokens=context,
            num_heads=m.num_heads,
            num_kv_heads=m.num_kv_heads,
            head_size=mixer.head_size,
            format=compute,
            kv_format=kv,
            window_tokens=_reach(mixer),
        )
    if isinstance(mixer, LatentAttention | CompressedAttention):
        size, value = _latent_size(m)
        return LatentDecode(
            batch=sequences,
            context_tokens=_attended(mixer, context),
            num_heads=m.num_heads,
            format=compute,
            kv_format=kv,
            head_size=size,
            value_head_size=value,
        )
    return _recurrent(mixer, m, sequences, sequences, is_decode=True)


def _latent_size(m: MixerShard) -> tuple[int, int]:
    """Width of the shared key and of the part of it that serves as value."""
    if isinstance(m.mixer, LatentAttention):
        return m.mixer.kv_lora_rank + m.mixer.rope_head_size, m.mixer.kv_lora_rank
    assert isinstance(m.mixer, CompressedAttention)
    return m.mixer.head_size, m.mixer.head_size


def _attended(mixer: LatentAttention | CompressedAttention, context: Ints) -> Ints:
    """Cache entries that a query looks at: everything, the selected few, or a window and compressed history."""
    if isinstance(mixer, LatentAttention):
        return np.minimum(context, mixer.top_tokens) if mixer.top_tokens else context
    history = context // mixer.ratio if mixer.ratio else np.zeros_like(context)
    if mixer.top_tokens:
        history = np.minimum(history, mixer.top_tokens)
    return np.minimum(context, mixer.window_tokens) + history


def _index(
    deployment: Deployment, mixer: SoftmaxAttention | LatentAttention | CompressedAttention, batch: Batch
) -> Timing:
    """The indexer scores every key that it keeps for every query: a product of their format, read once a sequence."""
    ratio, format = mixer.index_ratio, mixer.index_format
    prompt_keys, decode_keys = batch.prompt_context_tokens / ratio, batch.decode_context_tokens / ratio
    pairs = batch.prompt_sequences * batch.prompt_tokens * prompt_keys / 2 + batch.decode_sequences * decode_keys
    flops = 2.0 * mixer.index_heads * mixer.index_head_size * pairs
    keys = batch.prompt_sequences * prompt_keys + batch.decode_sequences * decode_keys
    moved = keys * mixer.index_head_size * bytes_per_element(format)
    device = deployment.cluster.device
    compute_s = flops / device.peak_flops_per_s((format, "bf16", "fp16", "fp32"))[1]
    memory_s = moved / device.memory_bandwidth_bytes_per_s
    time_s = np.maximum(compute_s / INDEX_PEAK_FRAC, memory_s / INDEX_BANDWIDTH_FRAC)
    return Timing(
        time_s=time_s,
        compute_s=compute_s,
        memory_s=memory_s,
        overhead_s=np.zeros_like(time_s),
        flops=flops,
        bytes=moved,
    )


def _recurrent(mixer: RecurrentMixer, m: MixerShard, tokens: Ints, sequences: Ints, *, is_decode: bool) -> Op:
    share = m.num_heads / max(1, mixer.num_heads)
    return Recurrent(
        tokens=tokens,
        sequences=sequences,
        state_elements=round(mixer.state_elements * share),
        state_bytes_per_element=mixer.state_bytes_per_element,
        flops_per_token=mixer.flops_per_token * share,
        format="bf16",
        is_decode=is_decode,
        kind=mixer.kind,
        num_heads=m.num_heads,
        width=round(mixer.width * share),
        conv_elements=round(mixer.conv_elements * share),
    )
