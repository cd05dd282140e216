"""Prompts of latent attention behind an indexer: the heads that a kernel computes, the cache that engines choose."""

import numpy as np
import pytest

import orrery
from orrery.execution.batch import Batch
from orrery.execution.layout import Deployment
from orrery.execution.step import step
from orrery.scenario.ask import Answer

GLM = {"model": "zai-org/GLM-5.2-FP8", "num_devices": 8, "input_tokens": 8192, "output_tokens": 64, "concurrency": 1}


def deployed(**settings: object) -> Deployment:
    found = orrery.estimate(**GLM | settings)
    assert isinstance(found, Answer)
    return found.estimate.deployment


def prompt_flops(deployment: Deployment) -> float:
    """Of attention in one prompt of 8,192 tokens."""
    zero = np.zeros(1, np.int64)
    batch = Batch(
        prompt_sequences=np.ones(1, np.int64),
        prompt_tokens=np.full(1, 8192, np.int64),
        prompt_context_tokens=np.full(1, 8192, np.int64),
        decode_sequences=zero,
        decode_context_tokens=zero,
    )
    found = (p for p in step(deployment, batch).parts if p.name == "attention prefill" and p.once)
    return sum(p.count * float(np.ravel(p.once.flops)[0]) for p in found if p.once)


def test_flashmla_computes_64_heads_of_a_rank_that_holds_8():
    """64 heads over 8 ranks are 8 a rank; FlashMLA's sparse kernel computes 64 of them on Hopper. Attention ranks hold
    all 64, which is one tile: nothing is padded."""
    tensor = deployed(device="h200-sxm", tp=8, engine="sglang")
    ranks = deployed(device="h200-sxm", tp=1, dp=8, ep=8, engine="sglang")
    assert prompt_flops(tensor) == pytest.approx(prompt_flops(ranks))
    vllm = deployed(device="h200-sxm", tp=8, engine="vllm")
    assert prompt_flops(vllm) == pytest.approx(prompt_flops(tensor))


def test_other_kernels_compute_the_heads_of_the_rank():
    """On Blackwell SGLang's cache is FP8 and the kernel TensorRT-LLM's: 8 heads and not 128."""
    b200 = deployed(device="b200", tp=8, engine="sglang")
    flashmla = deployed(device="b200", tp=8, engine="sglang", kv="bf16")
    assert prompt_flops(flashmla) == pytest.approx(16 * prompt_flops(b200))


@pytest.mark.parametrize(("device", "kv"), [("h200-sxm", "bf16"), ("b200", "fp8"), ("gb300", "fp8")])
def test_sglangs_cache_behind_an_indexer_follows_the_device(device: str, kv: str):
    assert deployed(device=device, tp=8, engine="sglang").formats.kv == kv


def test_sglangs_cache_of_dense_latents_is_as_the_weights_say():
    assert deployed(model="deepseek-ai/DeepSeek-R1", device="b200", tp=8, engine="sglang").formats.kv == "bf16"
