"""Library calls on a processor of round numbers: every amount by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.kernels.host.amounts import SCORE_FLOPS, amounts, least
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm

CPU = SimpleNamespace(
    memory_bandwidth_bytes_per_s=1000.0,
    vector_flops_per_s=100.0,
    last_level_cache_bytes=4096.0,
    peak_flops_per_s=lambda rates: (rates[0], 200.0),
)
CONSTANTS = {"direct_products": 480.0, "near_bytes": 256.0}


def nonzero(op) -> dict[str, float]:
    """The amounts that are not none."""
    return {name: float(np.sum(amount)) for name, amount in amounts(op, CPU, CONSTANTS).items() if np.any(amount)}


def test_a_small_product_reads_its_weight_where_it_lies():
    """3 batches of 4 x 8 x 15 in FP32: 480 multiply-adds are not too many; the weight is 8 x 15 x 4 bytes."""
    op = Gemm(m=4, n=8, k=15, batch=3, format="fp32")
    assert nonzero(op) == pytest.approx(
        {"call_s": 3, "product_frac": 2 * 3 * 480 / 200, "direct_memory_ratio": 3 * 8 * 15 * 4 / 1000}
    )


def test_a_larger_product_packs_both_operands():
    op = Gemm(m=4, n=8, k=16, batch=3, format="fp32")
    packed = 3 * (8 * 16 + 4 * 16) * 4 / 1000
    assert nonzero(op) == pytest.approx({"call_s": 3, "product_frac": 2 * 3 * 512 / 200, "pack_memory_ratio": packed})


@pytest.mark.parametrize(("m", "n"), [(1, 40), (40, 1)])
def test_a_single_row_or_column_is_a_matrix_vector_product(m, n):
    """No product units; the weight passes once."""
    op = Gemm(m=m, n=n, k=16, batch=2, format="fp32")
    assert nonzero(op) == pytest.approx({"call_s": 2, "vector_memory_ratio": 2 * 16 * n * 4 / 1000})


@pytest.mark.parametrize(
    ("k", "far"),
    [
        (8, 0.0),  # 8 x 8 x 4 = 256 bytes are near
        (16, 0.25),  # an octave of the four from 256 to 4096
        (64, 0.75),
        (128, 1.0),
        (1024, 1.0),
    ],
)
def test_what_was_read_before_comes_from_caches_by_octaves(k, far):
    op = Gemm(m=1, n=8, k=k, format="fp32", is_cold=False)
    found, weight_s = amounts(op, CPU, CONSTANTS), 8 * k * 4 / 1000
    assert found["vector_memory_ratio"] == pytest.approx(weight_s * far)
    assert found["vector_cache_ratio"] == pytest.approx(weight_s * (1 - far))


def test_a_cache_smaller_than_what_is_near_has_one_octave():
    """256 bytes are near and the last cache holds 300: 384 bytes are 0.585 octaves beyond."""
    small = SimpleNamespace(**(vars(CPU) | {"last_level_cache_bytes": 300.0}))
    op = Gemm(m=1, n=8, k=12, format="fp32", is_cold=False)
    assert amounts(op, small, CONSTANTS)["vector_memory_ratio"] == pytest.approx(0.384 * math.log2(1.5))


def test_products_of_nothing_are_no_call():
    assert nonzero(Gemm(m=4, n=0, k=15, format="fp32")) == {}


def test_a_prompt_is_two_products_with_passes_over_all_scores():
    """2 prompts of 3 tokens after 5 others, 4 heads on 2 key heads of 6 wide keys and 10 wide values, in FP32.

    Scores: 2 x 4 x 3 x 8 = 192, which are 96 x 4 bytes a prompt: log2(384 / 256) / 2 of the passes are far.
    """
    op = AttentionPrefill(
        batch=2,
        query_tokens=3,
        context_tokens=8,
        num_heads=4,
        num_kv_heads=2,
        head_size=6,
        value_head_size=10,
        format="fp32",
        kv_format="bf16",
    )
    passes_s, far = 20 * 192 / 100, math.log2(1.5) / 2
    assert SCORE_FLOPS == 20
    assert nonzero(op) == pytest.approx(
        {
            "call_s": 2,
            "group_s": 4,
            "product_frac": 2 * 192 * 16 / 200,
            "score_near_ratio": passes_s * (1 - far),
            "score_far_ratio": passes_s * far,
            "entry_ratio": 2 * 3 * (4 * 6 + 2 * 16) * 4 / 1000,
            "read_cache_ratio": 2 * 8 * 2 * 16 * 2 / 1000,
        }
    )
    flops, moved, peak = least(op, CPU)
    assert flops == 4 * 2 * 4 * (6 + 7 + 8) * 6
    assert moved == 2 * 8 * 2 * 2 * 6 * 2 + 2 * 2 * 3 * 4 * 6 * 4
    assert peak == 200


@pytest.mark.parametrize(("window", "seen"), [(0, 8), (4, 4), (20, 8)])
@pytest.mark.parametrize("is_cold", [True, False])
def test_a_step_reads_what_its_window_lets_through(window, seen, is_cold):
    """Values are as wide as keys; a cold cache comes from memory."""
    op = AttentionDecode(
        batch=2,
        context_tokens=8,
        num_heads=4,
        num_kv_heads=2,
        head_size=6,
        window_tokens=window,
        is_cold=is_cold,
        format="fp32",
        kv_format="fp32",
    )
    found = amounts(op, CPU, CONSTANTS)
    kept_s = 2 * seen * 2 * 12 * 4 / 1000
    assert found["read_memory_ratio"] == pytest.approx(kept_s if is_cold else 0)
    assert found["read_cache_ratio"] == pytest.approx(0 if is_cold else kept_s)
    assert found["product_frac"] == pytest.approx(2 * (2 * 4 * seen) * 12 / 200)
    flops, moved, _ = least(op, CPU)
    assert flops == 4 * 2 * 4 * seen * 6
    assert moved == 2 * seen * 2 * 2 * 6 * 4 + 2 * 2 * 4 * 6 * 4


def test_several_queries_reach_a_window_further():
    op = AttentionDecode(
        batch=1,
        context_tokens=50,
        query_tokens=3,
        num_heads=1,
        num_kv_heads=1,
        head_size=1,
        window_tokens=4,
        format="fp32",
        kv_format="fp32",
    )
    assert amounts(op, CPU, CONSTANTS)["read_memory_ratio"] == pytest.approx((4 + 3 - 1) * 2 * 4 / 1000)
    assert least(op, CPU)[0] == 4 * 3 * 6  # 6 keys a query at most


@pytest.mark.parametrize(
    ("tokens", "far"), [(10, 0.0), (21, 0.0), (32, math.log2(1.5) / 2), (64, math.log2(3) / 2), (100, 1.0)]
)
def test_a_stream_is_near_up_to_a_quarter_of_where_all_is_far(tokens, far):
    """A sum moves three words: 12 bytes a token in FP32; 256 bytes are near, and beyond 1024 all is far."""
    op = Elementwise(kind="add", tokens=tokens, width=1, format="fp32")
    found = amounts(op, CPU, CONSTANTS)
    assert found["call_s"] == 1
    assert found["stream_near_ratio"] == pytest.approx(tokens * 12 / 1000 * (1 - far))
    assert found["stream_far_ratio"] == pytest.approx(tokens * 12 / 1000 * far)


@pytest.mark.parametrize(("kind", "words", "flops"), [("add", 3, 1), ("sample", 4, 12), ("quantise", 2, 3)])
def test_the_least_of_element_wise_work(kind, words, flops):
    op = Elementwise(kind=kind, tokens=5, width=7, format="fp32")
    assert [float(x) for x in least(op, CPU)] == [35 * flops, 35 * words * 4, 100]


def test_the_least_of_a_product():
    done, moved, peak = least(Gemm(m=4, n=8, k=15, batch=3, format="fp32"), CPU)
    assert (done, moved, peak) == (2 * 3 * 480, 3 * (60 + 120 + 32) * 4, 200)
    assert nonzero(Elementwise(kind="add", tokens=0, width=7, format="fp32")) == {}
