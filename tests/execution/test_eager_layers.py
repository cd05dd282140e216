"""Layers whose operators a Python library launches one by one: counts, bytes and time by hand."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.models import get_model
from orrery.execution.batch import Batch, decodes_of
from orrery.execution.eager_layers import operators
from orrery.execution.host import launches_s
from orrery.execution.shard import num_kernels
from orrery.execution.step import step
from orrery.execution.whole_prompts import in_one_pass


def prompts(tokens):
    """A step of one prompt."""
    one, zero = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Batch(
        prompt_sequences=one,
        prompt_tokens=one * tokens,
        prompt_context_tokens=one * tokens,
        decode_sequences=zero,
        decode_context_tokens=zero,
    )


def layer(name, at=0):
    model = get_model(name)
    return operators(model.blocks[at], model.hidden_size)


@pytest.mark.parametrize(
    ("name", "launches"),
    [
        # seven products, attention and its copy, two appends, rotation, two norms, gate and product, two additions
        ("llama-3.1-8b", 7 + 1 + 1 + 2 + 10 + 2 * 8 + 2 + 2),
        ("qwen3-1.7b", 41 + 2 * 8),  # and norms of queries and keys
        ("gemma-2-2b", 41 + 2 * 8),  # and norms behind attention and behind the products
        ("qwen3-30b-a3b", 5 + 14 + 4 * 8 + 2 + 21),  # the router's product for three; experts for the gate
        ("microsoft/phi-1_5", 6 + 14 + 1 + 1 + 2),  # one layer norm for both halves, no gate
        ("BAAI/bge-large-en-v1.5", 6 + 1 + 1 + 2 + 1 + 2),  # no rotation, no cache
        ("deepseek-ai/DeepSeek-V3", 8 + 14 + 5 + 4 * 8 + 2 + 2),  # latents put together and spread, and their norms
    ],
)
def test_launches_of_a_layer(name, launches):
    assert layer(name).num_launches == launches


def test_words_of_a_token():
    """Norms 18 words an element, rotation 10 of queries and keys, the copy and the appends 2, additions 3, gate 5."""
    found = layer("llama-3.1-8b")
    hidden, queries, keys, ffn = 4096, 4096, 1024, 14336
    assert found.token_bytes == 2 * (
        18 * 2 * hidden + 10 * (queries + keys) + 2 * (queries + 2 * keys) + 2 * 3 * hidden + 5 * ffn
    )
    assert found.cached_token_bytes == 2 * 2 * 2 * keys
    assert found.decoded_token_bytes == 0
    assert layer("BAAI/bge-large-en-v1.5").token_bytes == 2 * (2 * 2 * 1024 + 2 * 1024 + 2 * 3 * 1024 + 2 * 4096)


def test_words_of_experts():
    """Eight experts' three matrices are copied for each decoded token; tokens go there and back."""
    found = layer("qwen3-30b-a3b")
    assert found.decoded_token_bytes == 2 * 3 * 8 * 3 * 2048 * 768
    dense = 18 * (2 * 2048 + 36 * 128) + 10 * 36 * 128 + 2 * (32 + 8) * 128 + 2 * 3 * 2048
    assert found.token_bytes == 2 * (dense + 8 * 8 * 2048)


@pytest.fixture
def modules(deploy):
    """A deployment whose engine launches operators one by one."""
    return lambda **more: deploy(engine="transformers", **more)


def test_a_step_launches_every_operator(modules, deploy):
    d = modules()
    assert num_kernels(d) == sum(b.count * operators(b, d.model.hidden_size).num_launches for b in d.model.blocks)
    assert launches_s(d) == pytest.approx(num_kernels(d) * 18e-6)
    fused = replace(d, engine=replace(d.engine, runs_modules=False))
    assert num_kernels(fused) < num_kernels(d) / 3


def test_narrow_products_launch_more(modules):
    """Six more a product in 4 bits, 29 in 8; none where the library's own file says none."""
    wide, four, eight = (modules(weights=w) for w in ("bf16", "nf4", "int8"))
    products = sum(b.count * operators(b, wide.model.hidden_size).num_products for b in wide.model.blocks)
    assert num_kernels(four) - num_kernels(wide) == 6 * products
    assert num_kernels(eight) - num_kernels(wide) == 29 * products
    plain = replace(four, engine=replace(four.engine, num_launches_4bit=0))
    assert num_kernels(plain) == num_kernels(wide)


def named(deployment, batch, name):
    return sum((p.time_s for p in step(deployment, batch).parts if p.name == name), np.zeros(batch.num_tokens.size))


def test_what_operators_move_takes_the_place_of_fused_kernels(modules):
    """Time follows the tokens; a cache is written anew for every decoded token, never for prompts."""
    d = modules()
    once, twice = named(d, prompts(4096), "operators"), named(d, prompts(8192), "operators")
    assert twice[0] / once[0] == pytest.approx(2.0, rel=0.02)
    assert named(d, prompts(4096), "norms")[0] == 0.0
    assert named(d, prompts(4096), "cache rewritten")[0] == 0.0
    few, many = (named(d, decodes_of(np.array([64]), n), "cache rewritten") for n in (4096, 8192))
    assert many[0] / few[0] == pytest.approx(2.0, rel=0.02)
    fused = replace(d, engine=replace(d.engine, runs_modules=False))
    assert named(fused, prompts(4096), "operators")[0] == 0.0


def test_prompts_of_a_batch_are_read_in_one_pass(modules):
    d = modules()
    assert in_one_pass(d, 32, 512).max_num_batched_tokens == 32 * 512
    asked = replace(d, max_num_batched_tokens=100)
    assert in_one_pass(asked, 32, 512) is asked


def test_a_block_without_a_mixer():
    """Its products, its norm, the gate, and additions."""
    block = replace(get_model("llama-3.1-8b").blocks[0], mixer=None, norm_elements=4096)
    assert operators(block, 4096).num_launches == 7 + 8 + 2 + 2
