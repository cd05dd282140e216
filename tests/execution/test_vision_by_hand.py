"""A vision tower in a step, worked out by hand for Qwen3-VL-8B."""

from dataclasses import replace

import numpy as np
import pytest
from batches import decodes

from orrery import kernels, network
from orrery.execution.batch import Batch
from orrery.execution.layout import Images
from orrery.execution.step import step
from orrery.execution.vision import GROUP
from orrery.kernels.ops import AttentionPrefill

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
ONE = Images(prompt_tokens=452, sequences=1, patches=784)
"""448 x 448 pixels are 28 x 28 patches of 16: 784, and 196 tokens; a prompt of 256 more."""


def prompts(*sequences, tokens=452):
    n = np.array(sequences, dtype=np.int64)
    new, none = np.full_like(n, tokens), np.zeros_like(n)
    return Batch(
        prompt_sequences=n,
        prompt_tokens=new,
        prompt_context_tokens=new,
        decode_sequences=none,
        decode_context_tokens=none,
    )


@pytest.fixture
def seeing(deploy):
    return lambda **more: replace(deploy(model=MODEL, **more), images=ONE)


def tower_parts(deployment, batch):
    return [p for p in step(deployment, batch).parts if p.group == GROUP]


def test_operations_by_hand(seeing):
    """27 layers, 1152 wide, 4304 in between; patches of 3 x 2 x 16 x 16; a merger at the end and three deep ones."""
    flops = sum(p.work(0)[0] for p in tower_parts(seeing(), prompts(1)) if p.op in ("gemm", "attention_encoder"))
    patches = 2 * 784 * 1536 * 1152
    layers = 27 * 2 * 784 * (1152 * 3456 + 1152 * 1152 + 2 * 1152 * 4304)
    mergers = 4 * 2 * 196 * (4608 * 4608 + 4608 * 4096)
    attention = 27 * 4 * 784 * 784 * 1152
    assert flops == pytest.approx(patches + layers + mergers + attention, rel=1e-9)


def test_attention_is_the_encoders_kernel(seeing):
    """16 heads of 72 over 784 patches, no mask, once a layer."""
    deployment = seeing()
    size = np.array([784])
    op = AttentionPrefill(
        batch=np.array([1]),
        query_tokens=size,
        context_tokens=size,
        num_heads=16,
        num_kv_heads=16,
        head_size=72,
        format="bf16",
        kv_format="bf16",
        is_causal=False,
    )
    once_s = float(kernels.predict(op, deployment.cluster.device, deployment.engine.kernels).time_s[0])
    found = next(p for p in tower_parts(deployment, prompts(1)) if p.name == "attention")
    assert found.time_s[0] == pytest.approx(27 * once_s * deployment.engine.compute_ratio, rel=1e-12)


def test_the_tower_comes_on_top_of_the_step(seeing):
    """The step of the same prompt without images, and the tower's parts, one after the other."""
    deployment = seeing()
    with_s, without_s = (float(step(d, prompts(1)).time_s[0]) for d in (deployment, replace(deployment, images=None)))
    tower_s = sum(float(p.time_s[0]) for p in tower_parts(deployment, prompts(1)))
    assert with_s == pytest.approx(without_s + tower_s, rel=1e-12)


def test_half_a_prompt_holds_half_of_its_images(seeing):
    """On average; an image itself is never cut, so half an image takes half of a whole one's time."""
    whole, half = (sum(float(p.time_s[0]) for p in tower_parts(seeing(), prompts(1, tokens=t))) for t in (452, 226))
    assert half == pytest.approx(whole / 2, rel=1e-12)


def test_decodes_see_nothing(seeing):
    assert not tower_parts(seeing(), decodes(1, 64))


def test_no_images_is_the_step_without_a_tower(seeing):
    blind = replace(seeing(), images=None)
    assert not tower_parts(blind, prompts(1, 8))


def test_tensor_parallel_ranks_add_up_two_products_a_layer(seeing):
    """784 patches x 1152 x 2 bytes, twice in each of 27 layers; each rank has 8 of 16 heads."""
    deployment = seeing(tp=2)
    found = next(p for p in step(deployment, prompts(1)).parts if p.name == "vision all-reduce")
    work = network.Collective(
        kind="all_reduce",
        num_devices=2,
        message_bytes=np.array([784 * 1152 * 2.0]),
        library=deployment.engine.kernels,
        has_peer_to_peer=True,
        devices_per_node=8,
    )
    once_s = float(network.predict(work, deployment.cluster.device).time_s[0])
    assert found.time_s[0] == pytest.approx(54 * once_s, rel=1e-12)
    attention = next(p for p in tower_parts(deployment, prompts(1)) if p.name == "attention")
    assert attention.work(0)[0] == pytest.approx(27 * 4 * 784 * 784 * 1152 / 2, rel=1e-9)


def test_windows_attend_within_themselves(deploy):
    """Qwen2.5-VL: 28 of 32 layers in windows of 8 x 8 patches; 1024 patches are 16 of them."""
    images = Images(prompt_tokens=512, sequences=1, patches=1024)
    deployment = replace(deploy(model="Qwen/Qwen2.5-VL-7B-Instruct"), images=images)
    parts = {p.name: p for p in tower_parts(deployment, prompts(1, tokens=512))}
    assert parts["attention"].work(0)[0] == pytest.approx(4 * 4 * 1024 * 1024 * 1280, rel=1e-9)
    assert parts["window attention"].work(0)[0] == pytest.approx(28 * 16 * 4 * 64 * 64 * 1280, rel=1e-9)
