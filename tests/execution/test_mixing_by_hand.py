"""Attention and recurrent mixers of every kind in a step, worked out by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_llama import H100, cut

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.execution import mixing
from orrery.execution.shard import MixerShard
from orrery.models.model import CompressedAttention, LatentAttention, RecurrentMixer, SoftmaxAttention

SOFTMAX = SoftmaxAttention(num_heads=8, num_kv_heads=4, head_size=16, value_head_size=12, window_tokens=50)
LATENT = {"num_heads": 8, "q_lora_rank": 0, "kv_lora_rank": 24, "nope_head_size": 16, "rope_head_size": 8}
COMPRESSED = {"num_heads": 8, "head_size": 16, "window_tokens": 50, "ratio": 4}
BATCH = SimpleNamespace(
    prompt_sequences=np.array([2]),
    prompt_tokens=np.array([30]),
    prompt_context_tokens=np.array([100]),
    decode_sequences=np.array([5]),
    decode_context_tokens=np.array([400]),
    guesses=0,
)


def of(mixer, heads=4, kv=2):
    return MixerShard(block="b", mixer=mixer, num_heads=heads, num_kv_heads=kv, count=3.0)


def test_attention_of_every_kind_in_a_step():
    prompt, decode = (f(cut(), of(SOFTMAX), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.batch[0], prompt.query_tokens[0], prompt.context_tokens[0]) == (2, 30, 100)
    assert (prompt.num_heads, prompt.num_kv_heads, prompt.head_size, prompt.value_head_size) == (4, 2, 16, 12)
    assert (prompt.window_tokens, decode.window_tokens, decode.batch[0], decode.context_tokens[0]) == (50, 50, 5, 400)
    latent = LatentAttention(**LATENT, value_head_size=20)
    prompt, decode = (f(cut(), of(latent), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.head_size, prompt.value_head_size) == (24, 20)
    assert (decode.head_size, decode.value_head_size, decode.context_tokens[0]) == (32, 24, 400)
    sparse = LatentAttention(**LATENT, value_head_size=20, top_tokens=64, index_heads=2, index_head_size=8)
    prompt, decode = (f(cut(), of(sparse), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.num_kv_heads, prompt.head_size, prompt.value_head_size) == (1, 32, 24)
    assert (prompt.window_tokens[0], prompt.context_tokens[0], decode.context_tokens[0]) == (64, 30 + 64, 64)
    near = CompressedAttention(**COMPRESSED)
    prompt, decode = (f(cut(), of(near), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.window_tokens[0], decode.context_tokens[0]) == (50 + 25, 50 + 100)
    assert (decode.head_size, decode.value_head_size) == (16, 16)
    few = CompressedAttention(**COMPRESSED, top_tokens=30)
    assert mixing._decode_op(cut(), of(few), BATCH).context_tokens[0] == 80
    window = CompressedAttention(**(COMPRESSED | {"ratio": 0}))
    assert mixing._decode_op(cut(), of(window), BATCH).context_tokens[0] == 50
    chunked = SoftmaxAttention(num_heads=8, num_kv_heads=4, head_size=16, value_head_size=12, chunk_tokens=7)
    assert mixing._reach(chunked) == 7


@pytest.mark.parametrize(
    ("whole", "context", "window", "reach"),
    [(False, 100, 64, 94), (False, 30, 30, 30), (True, 100, 64, 94), (True, 30, 64, 94)],
)
def test_a_selection_of_fixed_length_is_computed_whole(whole, context, window, reach):
    """30 new tokens that may each select 64: behind 70 others all do. A prompt of 30 has less to select from, and the
    kernel computes all 64 of each token where its rows have one length, as it would behind 64 others."""
    sparse = LatentAttention(**LATENT, value_head_size=20, top_tokens=64, index_heads=2, index_head_size=8)
    deployment = cut()
    deployment = replace(deployment, engine=replace(deployment.engine, computes_whole_selection=whole))
    batch = SimpleNamespace(**(vars(BATCH) | {"prompt_context_tokens": np.array([context])}))
    prompt = mixing._prompt_op(deployment, of(sparse), batch)
    assert (prompt.query_tokens[0], prompt.window_tokens[0], prompt.context_tokens[0]) == (30, window, reach)


def test_short_prompts_pay_for_the_selection_until_a_release_runs_them_dense():
    found = [get_engine("vllm", version, H100).computes_whole_selection for version in ("0.10.2", "0.13.0", "0.26.0")]
    assert found == [False, True, False]


def test_a_share_of_a_recurrent_state():
    """Four of eight heads: half of the state, of the operations, the width and the convolution."""
    state = RecurrentMixer(
        kind="mamba2", num_heads=8, state_elements=640, conv_elements=33, flops_per_token=100.0, width=20
    )
    prompt, decode = (f(cut(), of(state), BATCH) for f in (mixing._prompt_op, mixing._decode_op))
    assert (prompt.tokens[0], prompt.sequences[0], prompt.is_decode) == (60, 2, False)
    assert (decode.tokens[0], decode.sequences[0], decode.is_decode) == (5, 5, True)
    assert (decode.state_elements, decode.flops_per_token, decode.width, decode.conv_elements) == (320, 50.0, 10, 16)


def test_an_indexer_scores_every_key():
    """Prompts: 2 x 30 queries see half of 100 keys; decodes 5 x 400. Two heads of eight, a byte a key element."""
    sparse = LatentAttention(**LATENT, value_head_size=20, top_tokens=64, index_heads=2, index_head_size=8)
    found = mixing._index(cut(), sparse, BATCH)
    assert found.flops[0] == 2 * 2 * 8 * (60 * 50 + 2000)
    assert found.bytes[0] == (200 + 2000) * 8
    compute_s = found.flops[0] / H100.dense_flops_per_s["fp8"]
    memory_s = found.bytes[0] / H100.memory_bandwidth_bytes_per_s
    assert found.time_s[0] == pytest.approx(max(compute_s / 0.5, memory_s / 0.8))
    thin = CompressedAttention(**COMPRESSED, index_heads=2, index_head_size=8)
    assert mixing._index(cut(), thin, BATCH).bytes[0] == (50 + 500) * 8


def test_an_indexer_over_pooled_keys_scores_one_for_every_few_tokens():
    """One key for five tokens: a fifth of the pairs and of the keys, of two bytes each at the rate of 16 bits."""
    pooled = replace(SOFTMAX, top_tokens=64, index_heads=2, index_head_size=8, index_ratio=5, index_format="bf16")
    found = mixing._index(cut(), pooled, BATCH)
    assert found.flops[0] == 2 * 2 * 8 * (60 * 10 + 400)
    assert found.bytes[0] == (40 + 400) * 8 * 2
    assert found.compute_s[0] == pytest.approx(found.flops[0] / H100.dense_flops_per_s["bf16"])


def test_checking_guesses_reads_the_cache_once():
    timing = mixing.Timing(
        time_s=np.array([10.0]),
        compute_s=np.array([2.0]),
        memory_s=np.array([9.0]),
        overhead_s=np.array([1.0]),
        flops=np.array([7.0]),
        bytes=np.array([5.0]),
    )
    few, many = mixing._verifying(timing, 4), mixing._verifying(timing, 6)
    assert (few.time_s[0], few.compute_s[0], few.flops[0], few.bytes[0]) == (10.0, 8.0, 28.0, 5.0)
    assert many.time_s[0] == 13.0


@pytest.mark.parametrize(
    ("kv", "device", "formats"),
    [
        ("bf16", "h100-sxm", ("bf16", "bf16")),
        ("fp8", "h100-sxm", ("fp8", "fp8")),
        ("fp8", "a100-sxm-80gb", ("bf16", "fp8")),
        ("fp32", "h100-sxm", ("fp32", "fp32")),
    ],
)
def test_what_a_cache_is_multiplied_in(kv, device, formats):
    assert mixing._attention_formats(cut(kv=kv, device=get_device(device))) == formats
