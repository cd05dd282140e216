"""Attention that is asked for by name: turns on Hopper by hand, limits, and silence nowhere."""

import numpy as np
import pytest

from orrery import estimate
from orrery.catalog.devices import get_device
from orrery.kernels.attention.overlapped import waiting_s
from orrery.kernels.ops import AttentionPrefill

H100, A100 = get_device("h100-sxm"), get_device("a100-sxm-80gb")
SERVED = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 8192, "output_tokens": 16, "batch": 1}
FA2, FA3 = ({"attention_backend": f"flash-attention-{n}"} for n in (2, 3))


def op(**settings):
    sizes = {"batch": 33, "query_tokens": 512, "context_tokens": 512, "num_heads": 32, "num_kv_heads": 8}
    return AttentionPrefill(**sizes | {"head_size": 128, "format": "bf16", "kv_format": "bf16"} | settings)


def test_turns_by_hand():
    """1056 heads of four blocks are 32 whole waves on 132 processors; of 512 x 513 / 2 scores a head, each costs its
    products at 62.9 % of the peak, an exponential and 3.5 instructions in place of products at the peak."""
    peak = H100.dense_flops_per_s["bf16"]
    exponential = 16.0 / H100.vector_flops_per_s
    vector = 3.5 * 2.0 / H100.vector_flops_per_s
    turns = 4.0 * 128 / (0.629 * peak) + exponential + vector
    overlapped = max(4.0 * 128 / peak, exponential + vector)
    scores = 1056 * 512 * 513 / 2
    assert waiting_s(op(), H100) == pytest.approx(scores * (turns - overlapped), rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "scores"),
    [
        ({}, 4 * 5 / 2),
        ({"is_causal": False}, 16),
        ({"context_tokens": 10}, 7 + 8 + 9 + 10),
        ({"window_tokens": 2}, 1 + 2 + 2 + 2),
        ({"context_tokens": 10, "window_tokens": 9}, 7 + 8 + 9 + 9),
        ({"context_tokens": 10, "window_tokens": 3}, 4 * 3),
        ({"window_tokens": 2, "is_causal": False}, 8),
    ],
)
def test_scores_that_are_computed(settings, scores):
    """132 heads of four queries: a wave of one block each."""
    sizes = {"batch": 132, "num_heads": 1, "query_tokens": 4, "context_tokens": 4}
    one = waiting_s(op(**sizes | {"query_tokens": 1, "context_tokens": 1}), H100)
    assert waiting_s(op(**sizes | settings), H100) == pytest.approx(scores * one)


def test_arrays_are_answered_one_by_one():
    many = waiting_s(op(query_tokens=np.array([0, 128, 512]), context_tokens=np.array([0, 512, 512])), H100)
    assert many[0] == 0
    assert many[2] == pytest.approx(waiting_s(op(), H100))


def test_prompts_wait_on_hopper_and_answers_do_not():
    plain, turns, overlapped = (estimate(**SERVED | x).estimate for x in ({}, FA2, FA3))
    assert overlapped.ttft_s == plain.ttft_s
    assert turns.ttft_s > 1.03 * plain.ttft_s
    assert turns.decode_step_s == plain.decode_step_s


def test_the_wait_grows_with_the_prompt():
    def longer(tokens):
        plain, turns = (estimate(**SERVED | {"input_tokens": tokens} | x).estimate.ttft_s for x in ({}, FA2))
        return turns / plain - 1.0

    assert longer(512) < 0.01 < longer(4096) < longer(32768)


def test_older_generations_have_no_other_way():
    settings = SERVED | {"device": "a100-sxm-80gb"}
    assert estimate(**settings | FA2).estimate.ttft_s == estimate(**settings).estimate.ttft_s


def test_each_answer_says_what_the_name_changes():
    def notes(**settings):
        return " ".join(n for n in estimate(**SERVED | settings).notes if n.startswith("attention_backend"))

    assert "wait for their products" in notes(**FA2)
    assert not notes(**FA3)
    assert not notes(**FA2, device="a100-sxm-80gb")
    assert "no number changes" in notes(attention_backend="triton")
    assert "no number changes" in notes(**FA2, model="deepseek-v3", tp=8, weights="fp8", max_model_len=16384)
