"""The core of attention, forward and backward, with a fused kernel or through scores in memory."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.train.cut import Choice, Ints, heads, tokens
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.passes import DROPOUT_RATIO
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, LatentPrefill, Op, Recurrent
from orrery.models.model import CompressedAttention, LatentAttention, Mixer, RecurrentMixer, SoftmaxAttention

Floats = NDArray[np.float64]

BACKWARD_FLOPS_RATIO = 2.5
"""A fused backward pass makes the scores again and then four products where the forward pass made two. [dao-2022]"""

FLASH_2_RATIOS = {"hopper": (1.5 * 2.0) ** 0.5, "blackwell": (3.05 * 4.26) ** 0.5}
"""How much longer FlashAttention-2 takes than kernels for a generation's own matrix units, which are those measured:
1.5 to 2.0 times on Hopper; on Blackwell it does 380 TFLOP/s forward where cuDNN does 1,157 (heads of 64), and 360 where
FlashAttention-4 does 1,535 (heads of 128). Ampere's and Ada's units are the ones that it was written for. [shah-2024;
Dao-AILab/flash-attention#1589, #2605, #2280; meta-pytorch/tritonbench#171]"""

PRODUCTS_BACKWARD_RATIO = 2.0
"""Without fusion: four products for two."""

SOFTMAX_WORDS, WHOLE_WORDS, HALF_WORDS = 2.0, (2.0, 3.0), (1.5, 2.0)
"""Words that pass for each score: a softmax reads and writes one, its gradient reads two and writes one. A kernel that
masks what comes later reads only the half before it. [shoeybi-2019]"""

RING_SHARE = 0.75
"""Share of a rank's rows that a step of a causal ring after the first touches: all where keys come from before it, half
where they come from after it; as many steps are of the one kind as of the other, over all ranks."""

COPY_RATIO = 4.0 / 3.0
"""Words moved over a sum's three: heads are dealt out by reading and writing each element once before it is sent and
once after."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Seconds of attention through scores in memory; arrays of the choices."""

    products_s: Floats  # forward
    stream_forward_s: Floats
    stream_backward_s: Floats


def attention_times(job: TrainingJob, mixer: Mixer, choice: Choice) -> tuple[Floats, Floats]:
    """Forward and backward seconds of one layer's fused kernel on one device; 0 where there is none."""
    if isinstance(mixer, SoftmaxAttention) and not job.framework.has_fused_attention:
        return np.zeros(choice.tp.shape), np.zeros(choice.tp.shape)
    ring = np.where(choice.is_ring, choice.cp, 1)
    packed = round(job.framework.packed_tokens)
    if isinstance(mixer, SoftmaxAttention) and packed and packed <= job.seq_len // int(choice.cp.max()):
        forward = _in_samples(job, mixer, choice, packed) / ring
    elif isinstance(mixer, RecurrentMixer):
        forward = _predict(job, _op(job, mixer, choice, job.seq_len))
    elif _sees_everything(mixer):
        forward = _in_steps(job, mixer, choice, ring)
    else:  # windows reach into few other ranks' tokens: a share of the whole
        forward = _predict(job, _op(job, mixer, choice, job.seq_len)) / ring
    if not (job.framework.has_native_attention or isinstance(mixer, RecurrentMixer)):
        forward = FLASH_2_RATIOS.get(job.cluster.device.generation, 1.0) * forward
    return forward, BACKWARD_FLOPS_RATIO * forward


def _predict(job: TrainingJob, op: Op) -> Floats:
    return kernels.predict(op, job.cluster.device, job.framework.kernels).time_s


def _in_samples(job: TrainingJob, mixer: SoftmaxAttention, choice: Choice, packed: int) -> Floats:
    """One kernel over all samples of a micro-batch's sequences, each of so many tokens."""
    op = _op(job, mixer, choice, packed)
    assert isinstance(op, AttentionPrefill)
    return _predict(job, replace(op, batch=choice.micro_batch * (job.seq_len // packed)))


def _sees_everything(mixer: Mixer) -> bool:
    """Whether each token may look at all tokens before it."""
    if isinstance(mixer, SoftmaxAttention):
        return not (mixer.window_tokens or mixer.chunk_tokens)
    return isinstance(mixer, LatentAttention)


def _in_steps(job: TrainingJob, mixer: Mixer, choice: Choice, ring: Ints) -> Floats:
    """A kernel on the rank's own s/cp tokens, then cp - 1 on what comes round.

    Each rank holds one piece from either end of the sequence, so that causal work is the same on all: of keys from
    earlier ranks it reads the first half with all its queries, of later ones it reads all with half its queries.
    Every step has as many pairs as the first, (s/cp)^2/2, or without a mask twice as many. [llama-3-2024]
    """
    each = job.seq_len // ring
    own = _predict(job, _op(job, mixer, choice, each))
    if not (ring > 1).any():
        return own
    later = own
    if isinstance(mixer, SoftmaxAttention) and mixer.is_causal:
        op = _op(job, mixer, choice, each)
        assert isinstance(op, AttentionPrefill)
        later = _predict(job, replace(op, context_tokens=np.maximum(each // 2, 1), window_tokens=0, is_causal=False))
    return own + (ring - 1) * later


def context_streams(job: TrainingJob, mixer: Mixer | None, choice: Choice) -> tuple[Floats, Floats]:
    """Element-wise work that context parallelism adds to a layer, forward and backward.

    A ring merges the output of every step into the sum so far, and on the way back adds the gradients of queries, keys
    and values of every step after the first. Heads that are dealt out are copied into the order in which they travel.
    """
    zero = np.zeros(choice.tp.shape)
    if not isinstance(mixer, SoftmaxAttention | LatentAttention) or int(choice.cp.max()) == 1:
        return zero, zero
    t = tokens(job, choice)
    queries, keys = heads(mixer, choice.tp)
    if isinstance(mixer, SoftmaxAttention):
        query, pair = mixer.head_size * queries, (mixer.head_size + mixer.value_head_size) * keys
    else:
        size = mixer.nope_head_size + mixer.rope_head_size
        query, pair = size * queries, (size + mixer.value_head_size) * queries
    output = mixer.value_head_size * queries
    later = RING_SHARE * (choice.cp - 1)
    merged, summed, moved = (
        _predict(job, Elementwise(kind="add", tokens=t, width=w)) for w in (output, query + pair, query + pair + output)
    )
    share, copied = (choice.cp > 1).astype(np.float64), COPY_RATIO * moved
    return (
        share * np.where(choice.is_ring, (1.0 + later) * merged, copied),
        share * np.where(choice.is_ring, later * summed, copied),
    )


def _op(job: TrainingJob, mixer: Mixer, choice: Choice, seq: int | Ints) -> Op:
    """The kernel over ``seq`` tokens of each sequence."""
    ways = choice.tp * np.where(choice.is_ring, 1, choice.cp)  # all-to-all deals out heads
    num_heads, num_kv_heads = heads(mixer, ways)
    wide = job.framework.attention_format or job.recipe.wide_format
    if isinstance(mixer, SoftmaxAttention):
        return AttentionPrefill(
            batch=choice.micro_batch,
            query_tokens=seq,
            context_tokens=seq,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_size=mixer.head_size,
            value_head_size=mixer.value_head_size,
            format=wide,
            kv_format=wide,
            window_tokens=np.minimum(mixer.window_tokens or mixer.chunk_tokens, seq),
            is_causal=mixer.is_causal,
        )
    if isinstance(mixer, LatentAttention):
        return LatentPrefill(
            batch=choice.micro_batch,
            query_tokens=seq,
            context_tokens=seq,
            num_heads=num_heads,
            format=wide,
            kv_format=wide,
            head_size=mixer.nope_head_size + mixer.rope_head_size,
            value_head_size=mixer.value_head_size,
        )
    if isinstance(mixer, CompressedAttention):
        seen = mixer.window_tokens + (seq // mixer.ratio if mixer.ratio else 0)
        return AttentionPrefill(
            batch=choice.micro_batch,
            query_tokens=seq,
            context_tokens=seq,
            num_heads=num_heads,
            num_kv_heads=1,
            head_size=mixer.head_size,
            value_head_size=mixer.head_size,
            format=wide,
            kv_format=wide,
            window_tokens=np.minimum(seen, seq),
        )
    share = num_heads / max(1, mixer.num_heads)
    return Recurrent(
        tokens=choice.micro_batch * job.seq_len // choice.cp,
        sequences=choice.micro_batch,
        state_elements=np.rint(mixer.state_elements * share).astype(np.int64),
        state_bytes_per_element=mixer.state_bytes_per_element,
        flops_per_token=mixer.flops_per_token * share,
        format=wide,
        is_decode=False,
        kind=mixer.kind,
        num_heads=num_heads,
        width=np.rint(mixer.width * share).astype(np.int64),
        conv_elements=np.rint(mixer.conv_elements * share).astype(np.int64),
    )


def score_times(job: TrainingJob, mixer: Mixer | None, choice: Choice) -> Scores:
    """Where no kernel fuses them: Q K^T and P V of whole matrices, causal or not, and what passes over the scores."""
    zero = np.zeros(choice.tp.shape)
    if not isinstance(mixer, SoftmaxAttention) or job.framework.has_fused_attention:
        return Scores(products_s=zero, stream_forward_s=zero, stream_backward_s=zero)
    wide = job.recipe.wide_format
    num_heads, _ = heads(mixer, choice.tp)
    batch, seq = choice.micro_batch * num_heads, job.seq_len
    rows = seq // choice.cp
    scores = Gemm(m=rows, n=seq, k=mixer.head_size, batch=batch, format=wide)
    mixed = Gemm(m=rows, n=mixer.value_head_size, k=seq, batch=batch, format=wide)
    soft = _predict(job, Elementwise(kind="softmax", tokens=batch * rows, width=seq)) / SOFTMAX_WORDS
    ahead, back = HALF_WORDS if job.framework.is_fused and mixer.is_causal else WHOLE_WORDS
    drops = zero
    if job.framework.has_dropout:
        drops = DROPOUT_RATIO * _predict(job, Elementwise(kind="add", tokens=batch * rows, width=seq))
    return Scores(
        products_s=_predict(job, scores) + _predict(job, mixed),
        stream_forward_s=ahead * soft + drops,
        stream_backward_s=back * soft + drops,
    )


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
