"""Graphs of tensors in 32 bits: what they move between products, by hand, and products that are summed in 16 bits."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.execution.batch import Batch, decodes_of
from orrery.execution.shard import shard
from orrery.execution.step import step
from orrery.execution.tensor_passes import tensor_passes

LAYERS, HIDDEN, QUERIES, KEYS, FFN = 32, 4096, 4096, 1024, 14336


def prompts(tokens, context=0, sequences=1):
    """A step of equal prompts."""
    one, zero = np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Batch(
        prompt_sequences=one * sequences,
        prompt_tokens=one * tokens,
        prompt_context_tokens=one * (context or tokens),
        decode_sequences=zero,
        decode_context_tokens=zero,
    )


@pytest.fixture
def tensors(deploy):
    """Llama 3.1 8B as llama.cpp of 2024 runs it."""
    return lambda **more: deploy(model="llama-3.1-8b", engine="llama.cpp", engine_version="unknown", **more)


def moved_bytes(deployment, batch):
    """Bytes of each pass: an addition of 16-bit elements moves six."""
    found = tensor_passes(deployment, shard(deployment), batch)
    return {name: 6.0 * float(rows[0]) * elements for name, _, rows, elements, _ in found}


def test_what_operations_move(tensors):
    """Two norms of 20 bytes, rotation 8, two additions of 12, activation and gate 20; in 32 bits."""
    found = moved_bytes(tensors(weights="fp16"), prompts(512))
    each = 20 * 2 * HIDDEN + 8 * (QUERIES + KEYS) + 24 * HIDDEN + 20 * FFN
    assert found["operations"] == pytest.approx(512 * LAYERS * each)


def test_ends_of_products_are_rounded_and_widened(tensors):
    """Queries, keys and values each round their input, as gate and up do."""
    ends = (3 * HIDDEN + QUERIES + 2 * KEYS) + (QUERIES + HIDDEN) + (2 * HIDDEN + 2 * FFN) + (FFN + HIDDEN)
    found = moved_bytes(tensors(weights="fp16"), prompts(512))
    assert found["activations rounded"] == pytest.approx(512 * LAYERS * 6 * ends)
    assert found["weights unpacked"] == 0.0
    later = replace(tensors(weights="q8_0"), engine=replace(tensors().engine, unpacks_weights=False))
    assert moved_bytes(later, prompts(512))["activations rounded"] == 0.0  # products in 8 bits


def test_narrow_weights_are_unpacked_once_a_step(tensors):
    """8.5 bits and 16 of each weight, whatever the tokens."""
    weights = LAYERS * (HIDDEN * (QUERIES + 2 * KEYS) + QUERIES * HIDDEN + 3 * HIDDEN * FFN)
    found = moved_bytes(tensors(weights="q8_0"), prompts(512))
    assert found["weights unpacked"] == pytest.approx(weights * (1.0625 + 2.0))
    assert moved_bytes(tensors(weights="q8_0"), prompts(64))["weights unpacked"] == found["weights unpacked"]


def test_scores_go_through_memory(tensors):
    """Twenty bytes of each of 32 heads, for 512 queries over 4,096 tokens; none with FlashAttention."""
    found = moved_bytes(tensors(weights="fp16"), prompts(512, context=4096))
    assert found["scores"] == pytest.approx(LAYERS * 20 * 32 * 512 * 4096)
    flash = replace(tensors(), engine=replace(tensors().engine, keeps_scores=False))
    assert "scores" not in moved_bytes(flash, prompts(512, context=4096))


def test_decodes_only_run_operations(tensors):
    found = moved_bytes(tensors(weights="q8_0"), decodes_of(np.array([4]), 1000))
    assert found.pop("operations") > 0
    assert set(found.values()) == {0.0}


def products_s(deployment):
    return sum(float(p.time_s[0]) for p in step(deployment, prompts(2048)).parts if p.op == "gemm")


@pytest.mark.parametrize(("device", "ratio"), [("rtx-4090", 2.0), ("rtx-3090", 2.0), ("rtx-a6000", 1.0)])
def test_sums_in_16_bits_free_cards_that_are_held_back(tensors, device, ratio):
    """GeForce cards sum products of 16 bits in 32 at half the rate of their units, workstation cards do not."""
    quick = tensors(device=device, weights="fp16")
    slow = replace(quick, engine=replace(quick.engine, sums_in_16_bits=False))
    found = products_s(slow) / products_s(quick)
    assert 1.0 <= found <= ratio
    assert (found > 1.3) == (ratio > 1.0)


def test_other_vendors_kernels_take_activations_as_they_are(tensors):
    engine = tensors(device="m2-ultra").engine
    assert engine.runs_tensors
    assert not engine.sums_in_16_bits
    assert get_device("m2-ultra").vendor == "Apple"
