"""Answers that are retained: those of the rule itself, one for each op, shared and never changed."""

from dataclasses import fields, replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.kernels import dispatch
from orrery.kernels.dispatch import MAX_ROWS, MIN_ROWS, predict
from orrery.kernels.ops import AttentionDecode, Gemm, Timing

H100, H200 = get_device("h100-sxm"), get_device("h200-sxm")
SIZES = np.arange(1, 1 + MIN_ROWS)
GEMM = Gemm(m=SIZES, n=4096, k=4096, format="bf16")
DECODE = AttentionDecode(
    batch=8, context_tokens=128 * SIZES, num_heads=32, num_kv_heads=8, head_size=128, format="bf16", kv_format="bf16"
)


def rows(timing):
    return np.array([getattr(timing, f.name) for f in fields(Timing)])


@pytest.fixture(autouse=True)
def nothing_is_retained():
    dispatch.retained.cache_clear()


@pytest.mark.parametrize("op", [GEMM, DECODE])
def test_the_second_answer_is_the_first_and_that_of_the_rule(op):
    first, again = predict(op, H100, "vllm"), predict(replace(op), H100, "vllm")
    assert again is first
    bare = dispatch._worked_out(dispatch._rule(op, H100, "vllm"), op, H100, "vllm")
    assert np.array_equal(rows(first), rows(bare))


@pytest.mark.parametrize(
    "other",
    [
        replace(GEMM, m=SIZES + 1),
        replace(GEMM, m=SIZES.reshape(4, 4)),
        replace(GEMM, n=8192),
        replace(GEMM, format="fp8"),
        replace(GEMM, quantises_input=False, format="fp8"),
        replace(GEMM, is_cold=False),
        replace(GEMM, kept_frac=0.5),
    ],
)
def test_what_differs_in_one_size_has_an_answer_of_its_own(other):
    first = predict(GEMM, H100)
    assert predict(other, H100) is not first
    assert predict(GEMM, H200) is not first
    assert dispatch.retained.cache_info().currsize == 3


def test_nobody_changes_what_others_share():
    with pytest.raises(ValueError, match="read-only"):
        predict(GEMM, H100).time_s[0] = 0.0


@pytest.mark.parametrize("count", [1, MIN_ROWS - 1, MAX_ROWS + 1])
def test_answers_of_few_rows_are_quick_and_of_many_too_large_to_retain(count):
    predict(replace(GEMM, m=np.arange(1, 1 + count)), H100)
    assert dispatch.retained.cache_info().currsize == 0


def test_a_million_kernels_in_two_columns_are_many():
    predict(replace(GEMM, m=np.arange(1, 200)[:, None], n=np.arange(1, 200)[None, :]), H100)
    assert dispatch.retained.cache_info().currsize == 0
