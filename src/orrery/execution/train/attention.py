"""The core of attention, forward and backward, with a fused kernel or through scores in memory."""

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.train.cut import Choice, heads
from orrery.execution.train.job import TrainingJob
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, LatentPrefill, Op, Recurrent
from orrery.models.model import CompressedAttention, LatentAttention, Mixer, RecurrentMixer, SoftmaxAttention

Floats = NDArray[np.float64]

BACKWARD_FLOPS_RATIO = 2.5
"""A fused backward pass makes the scores again and then four products where the forward pass made two. [dao-2022]"""

UNFUSED_BACKWARD_RATIO = 2.0
"""Without fusion: four products for two, and the softmax's gradient reads two matrices and writes one."""


def attention_times(job: TrainingJob, mixer: Mixer, choice: Choice) -> tuple[Floats, Floats]:
    """Forward and backward seconds of one layer on one device, context parallelism balanced over causal work."""
    if isinstance(mixer, SoftmaxAttention) and not job.framework.has_fused_attention:
        forward = _unfused(job, mixer, choice)
        return forward, UNFUSED_BACKWARD_RATIO * forward
    op = _op(job, mixer, choice)
    forward = kernels.predict(op, job.cluster.device, job.framework.kernels).time_s
    whole = forward if isinstance(mixer, RecurrentMixer) else forward / np.where(choice.is_ring, choice.cp, 1)
    return whole, BACKWARD_FLOPS_RATIO * whole


def _op(job: TrainingJob, mixer: Mixer, choice: Choice) -> Op:
    ways = choice.tp * np.where(choice.is_ring, 1, choice.cp)  # all-to-all deals out heads
    num_heads, num_kv_heads = heads(mixer, ways)
    wide, seq = job.recipe.wide_format, job.seq_len
    if isinstance(mixer, SoftmaxAttention):
        return AttentionPrefill(
            batch=choice.micro_batch, query_tokens=seq, context_tokens=seq, num_heads=num_heads,
            num_kv_heads=num_kv_heads, head_size=mixer.head_size, value_head_size=mixer.value_head_size, format=wide,
            kv_format=wide, window_tokens=min(mixer.window_tokens or mixer.chunk_tokens, seq),
            is_causal=mixer.is_causal,
        )  # fmt: skip
    if isinstance(mixer, LatentAttention):
        return LatentPrefill(
            batch=choice.micro_batch, query_tokens=seq, context_tokens=seq, num_heads=num_heads, format=wide,
            kv_format=wide, head_size=mixer.nope_head_size + mixer.rope_head_size,
            value_head_size=mixer.value_head_size,
        )  # fmt: skip
    if isinstance(mixer, CompressedAttention):
        seen = mixer.window_tokens + (seq // mixer.ratio if mixer.ratio else 0)
        return AttentionPrefill(
            batch=choice.micro_batch, query_tokens=seq, context_tokens=seq, num_heads=num_heads, num_kv_heads=1,
            head_size=mixer.head_size, value_head_size=mixer.head_size, format=wide, kv_format=wide,
            window_tokens=min(seen, seq),
        )  # fmt: skip
    share = num_heads / max(1, mixer.num_heads)
    return Recurrent(
        tokens=choice.micro_batch * seq // choice.cp, sequences=choice.micro_batch,
        state_elements=np.rint(mixer.state_elements * share).astype(np.int64),
        state_bytes_per_element=mixer.state_bytes_per_element, flops_per_token=mixer.flops_per_token * share,
        format=wide, is_decode=False, kind=mixer.kind, num_heads=num_heads,
        width=np.rint(mixer.width * share).astype(np.int64),
        conv_elements=np.rint(mixer.conv_elements * share).astype(np.int64),
    )  # fmt: skip


def _unfused(job: TrainingJob, mixer: SoftmaxAttention, choice: Choice) -> Floats:
    """Scores = Q K^T, one pass of scaling, mask, softmax (and dropout), and P V: whole matrices, causal or not."""
    device, engine, wide = job.cluster.device, job.framework.kernels, job.recipe.wide_format
    num_heads, _ = heads(mixer, choice.tp)
    batch, seq = choice.micro_batch * num_heads, job.seq_len
    rows = seq // choice.cp
    scores = Gemm(m=rows, n=seq, k=mixer.head_size, batch=batch, format=wide)
    mixed = Gemm(m=rows, n=mixer.value_head_size, k=seq, batch=batch, format=wide)
    soft = Elementwise(kind="softmax", tokens=batch * rows, width=seq)
    drops = np.zeros(choice.tp.shape)
    if job.framework.has_dropout:  # reads a matrix, writes it again and a byte of mask an element
        drops = kernels.predict(Elementwise(kind="add", tokens=batch * rows, width=seq), device, engine).time_s
    return sum((kernels.predict(op, device, engine).time_s for op in (scores, soft, mixed)), drops)


def attention_flops(job: TrainingJob, mixer: Mixer, choice: Choice) -> Floats:
    """Operations of the forward pass on one device that a model's FLOP count credits: causal pairs only."""
    num_heads, _ = heads(mixer, choice.tp)
    local = choice.micro_batch * job.seq_len / choice.cp
    if isinstance(mixer, RecurrentMixer):
        return local * mixer.flops_per_token * num_heads / max(1, mixer.num_heads)
    return 2.0 * local * num_heads * _pair_width(mixer) * _seen_tokens(mixer, job.seq_len)


def _pair_width(mixer: SoftmaxAttention | LatentAttention | CompressedAttention) -> int:
    """Elements of a key and of a value that one pair of tokens multiplies."""
    if isinstance(mixer, LatentAttention):
        return mixer.nope_head_size + mixer.rope_head_size + mixer.value_head_size
    if isinstance(mixer, CompressedAttention):
        return 2 * mixer.head_size
    return mixer.head_size + mixer.value_head_size


def _seen_tokens(mixer: SoftmaxAttention | LatentAttention | CompressedAttention, seq: int) -> float:
    """Tokens that the mean query looks at."""
    if isinstance(mixer, SoftmaxAttention) and not mixer.is_causal:
        return float(seq)
    window = 0
    if isinstance(mixer, SoftmaxAttention):
        window = mixer.window_tokens or mixer.chunk_tokens or mixer.top_tokens
    elif isinstance(mixer, LatentAttention):
        window = mixer.top_tokens
    else:
        return min(seq / 2.0, mixer.window_tokens + (seq / 2.0 / mixer.ratio if mixer.ratio else 0.0))
    if 0 < window < seq:
        return window - window * (window - 1) / 2.0 / seq
    return (seq + 1) / 2.0
