"""Prompts read whole: what limits their length, and what a growing cache costs."""

import pytest

from orrery.execution.compression import Compression
from orrery.execution.shard import cache_of, shard
from orrery.execution.whole_prompts import growing_s, longest_prompt_tokens
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario

SCENARIO = {
    "model": "llama-2-7b",
    "device": "a100-sxm-80gb",
    "engine": "transformers",
    "batch": 1,
    "input_tokens": 1,
    "output_tokens": 1,
    "gpu_memory_utilization": 1.0,
}
D = resolve(read_scenario(SCENARIO)).deployment
SNAP = Compression(budget_tokens=1024)


def test_a_growing_cache_is_read_and_written():
    held = cache_of(D).bytes_per_token * 2 * 1000
    assert growing_s(D, 2, 1000) == pytest.approx(2 * held / D.cluster.device.memory_bandwidth_bytes_per_s)


def test_prompts_fill_what_weights_leave():
    free = 0.99 * D.cluster.device.memory_capacity_bytes - shard(D).weight_bytes
    tokens = longest_prompt_tokens(D, 1)
    logits, forward = 6.0 * 32000, 2.0 * (2 * 4096 + 3 * 11008)  # bytes a token: one after the other, the larger counts
    assert 0.9 * free < tokens * (cache_of(D).bytes_per_token + max(logits, forward)) < 1.1 * free
    assert longest_prompt_tokens(D, 2) == pytest.approx(tokens / 2, rel=0.01)


def test_a_fixed_cache_leaves_only_activations_and_logits():
    plain, snapped = longest_prompt_tokens(D, 1), longest_prompt_tokens(D, 1, SNAP)
    assert snapped > 2 * plain
    assert longest_prompt_tokens(D, 1, SNAP, has_all_logits=False) > 1.5 * snapped


def test_nothing_fits_beside_weights_that_do_not():
    small = resolve(read_scenario({**SCENARIO, "device": "rtx-3060"})).deployment
    assert longest_prompt_tokens(small, 1) == 0
