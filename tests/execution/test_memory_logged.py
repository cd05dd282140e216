"""The cache that engines log at their start, against what is worked out from the same settings."""

import pytest

from orrery.execution.memory import Memory, activation_bytes, forward_bytes, memory_of, sampling_bytes

GIB = 2.0**30

LOGGED = (
    # vllm-project/vllm pull request 10511 and a printed log of the same release: 54.93 GiB of 131,072 bytes a token
    ("llama-3.1-8b", "h100-sxm", "vllm", "0.6.6", {"max_num_batched_tokens": 8192}, 449_986, 0.02),
    # a notebook's log on a T4: 5,519 blocks of 16 tokens at half of its memory, prompts of 32,768 taken whole
    (
        "Qwen/Qwen2.5-1.5B",
        "t4",
        "vllm",
        "0.7.3",
        {
            "max_num_batched_tokens": 32768,
            "memory_utilization_frac": 0.5,
            "weights": "fp16",
            "activations": "fp16",
            "kv": "fp16",
        },
        88_304,
        0.10,
    ),
    # an 8B on a 3090 of 24 GB, defaults of the API server
    ("llama-3.1-8b", "rtx-3090", "vllm", "0.9.0", {}, 31_232, 0.02),
    # vllm-project/vllm issue 21348: four H100, defaults of the API server, and SGLang at 0.93 beside it
    (
        "Qwen/Qwen3-235B-A22B-FP8",
        "h100-sxm",
        "vllm",
        "0.9.2",
        {"tp": 4, "weights": "fp8_block", "activations": "fp8_block"},
        178_880,
        0.10,
    ),
    (
        "Qwen/Qwen3-235B-A22B-FP8",
        "h100-sxm",
        "sglang",
        "0.4.9",
        {"tp": 4, "weights": "fp8_block", "activations": "fp8_block", "memory_utilization_frac": 0.93},
        367_404,
        0.03,
    ),
)


@pytest.mark.parametrize(("model", "device", "engine", "version", "settings", "tokens", "within"), LOGGED)
def test_the_cache_is_as_large_as_the_engine_logged(deploy, model, device, engine, version, settings, tokens, within):
    memory = memory_of(deploy(model=model, device=device, engine=engine, engine_version=version, **settings))
    assert isinstance(memory, Memory)
    assert memory.kv_capacity_tokens == pytest.approx(tokens, rel=within)


@pytest.mark.parametrize(
    ("model", "peak_gib"),
    # the same pull request and printed log (1.26 and 1.19 GiB), and logs of a 7B with 152,064 logits (1.40 GiB)
    [("llama-3.1-8b", 1.19), ("Qwen/Qwen2.5-7B", 1.40)],
)
def test_sampling_256_sequences_is_the_peak_of_small_models(deploy, model, peak_gib):
    deployment = deploy(model=model, device="a100-sxm-80gb", engine_version="0.6.6")
    assert sampling_bytes(deployment) / GIB == pytest.approx(peak_gib, rel=0.03)
    assert activation_bytes(deployment) == max(sampling_bytes(deployment), forward_bytes(deployment))


def test_a_forward_pass_worked_by_hand(deploy):
    """Llama 3.1 8B, 8,192 tokens: two streams of 4,096, and both halves of 2 x 14,336 beside their product, in BF16."""
    deployment = deploy(model="llama-3.1-8b", engine_version="0.6.6", max_num_batched_tokens=8192)
    assert forward_bytes(deployment) == 8192 * 2 * (2 * 4096 + 3 * 14336)


def test_sglang_leaves_activations_outside_its_share(deploy):
    """Weights, cache and context fill the share; a larger token budget takes nothing from the cache."""
    small, large = (
        memory_of(deploy(engine="sglang", model="llama-3.1-8b", max_num_batched_tokens=n)) for n in (2048, 16384)
    )
    assert isinstance(small, Memory)
    assert isinstance(large, Memory)
    assert small.kv_capacity_tokens == large.kv_capacity_tokens
    filled = small.weights_bytes + small.context_bytes + small.kv_capacity_bytes
    assert filled == pytest.approx(0.88 * 0.99 * small.capacity_bytes)
    assert small.usable_bytes == pytest.approx(filled + small.activation_bytes)
