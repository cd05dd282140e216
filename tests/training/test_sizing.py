"""Sizes ranked by efficiency: parameters by hand, bounds, and the limits where the answer is known."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.kernels.ops import Gemm
from orrery.training.sizing import Size, rank_sizes, sizes_of

MI300X = get_device("mi300x")
BASE = Size(hidden_size=4096, ffn_size=14336, num_heads=32, num_kv_heads=8)


def test_parameters_by_hand():
    assert BASE.num_attention_parameters == 4096 * 4096 * 2 + 4096 * 1024 * 2
    assert BASE.num_ffn_parameters == 3 * 4096 * 14336
    plain = Size(hidden_size=64, ffn_size=256, num_heads=1, num_kv_heads=1, head_size=64, is_gated=False)
    assert plain.num_parameters == 4 * 64 * 64 + 2 * 64 * 256


def test_the_feed_forward_time_is_that_of_its_six_products():
    (found,) = rank_sizes(MI300X, [BASE], seq_len=4096)
    t, h, f = 4096, 4096, 14336
    shapes = [(t, 2 * f, h), (t, h, 2 * f), (2 * f, h, t), (t, h, f), (t, f, h), (h, f, t)]
    alone = [
        kernels.predict(Gemm(m=m, n=n, k=k, format="bf16", quantises_input=False), MI300X, "").time_s
        for m, n, k in shapes
    ]
    assert found.ffn_s == pytest.approx(sum(float(x) for x in alone))
    assert found.layer_s == found.attention_s + found.ffn_s
    peak = MI300X.dense_flops_per_s["bf16"]
    assert found.ffn_efficiency_frac == pytest.approx(6 * t * 3 * h * f / found.ffn_s / peak)


def test_best_first_and_efficiency_between_its_parts():
    sizes = [Size(hidden_size=h, ffn_size=4 * h, num_heads=h // 128, num_kv_heads=h // 128) for h in (256, 1024, 4096)]
    found = rank_sizes(MI300X, sizes, seq_len=2048)
    assert [r.size.hidden_size for r in found] == [4096, 1024, 256], "small layers do not fill the device"
    assert all(a.efficiency_frac >= b.efficiency_frac for a, b in pairwise(found))
    for r in found:
        low, high = sorted((r.attention_efficiency_frac, r.ffn_efficiency_frac))
        assert 0.0 < low <= r.efficiency_frac <= high < 1.0


@settings(max_examples=20, deadline=None)
@given(hidden=st.integers(4, 48), ffn=st.integers(1, 200), batch=st.integers(1, 4))
def test_no_size_beats_the_peak_and_more_tokens_never_take_less(hidden, ffn, batch):
    size = Size(hidden_size=64 * hidden, ffn_size=64 * ffn, num_heads=hidden, num_kv_heads=hidden, head_size=64)
    one, more = (rank_sizes(MI300X, [size], seq_len=1024, micro_batch=b)[0] for b in (batch, 2 * batch))
    assert 0.0 < one.efficiency_frac < 1.0
    assert more.layer_s >= one.layer_s


def test_narrow_formats_and_cut_layers_take_less_time():
    whole, cut, narrow = (
        rank_sizes(MI300X, [BASE], seq_len=4096, **more)[0] for more in ({}, {"tp": 8}, {"format": "fp8"})
    )
    assert cut.layer_s < whole.layer_s
    assert narrow.ffn_s < whole.ffn_s


def test_tp_must_divide_and_nothing_ranks_nothing():
    with pytest.raises(ScenarioError, match="tp: 16"):
        rank_sizes(MI300X, [BASE], seq_len=128, tp=16)
    assert rank_sizes(MI300X, [], seq_len=128) == []


def test_sizes_of_a_budget_are_near_it_and_aligned():
    found = list(sizes_of(2e8, head_sizes=(64, 128), heads_per_kv=4, multiple=256))
    assert len(found) == 8
    for s in found:
        assert s.num_parameters == pytest.approx(2e8, rel=0.15)
        assert s.ffn_size % 256 == 0
        assert s.num_heads * s.head_size == s.hidden_size
        assert s.num_heads == 4 * s.num_kv_heads
