"""Positions that stay cached: chosen by hand on small maps, and on drawn ones with planted heavy hitters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.execution.compression import Compression, compressing_s, kept_tokens
from orrery.execution.kept_cache import seen_tokens
from orrery.execution.kv_selection import WAYS, AttentionLaw, chosen, drawn_maps, recall_frac, scoring


def test_the_largest_sums_stay_by_hand():
    """One head, a window of two tokens, six keys: of the four before the window, key 1 has most, then key 3."""
    scores = np.array([[[0.1, 0.4, 0.0, 0.2, 0.3, 0.0], [0.0, 0.3, 0.1, 0.3, 0.1, 0.2]]])
    assert chosen("snapkv", scores, 4, pooled=1).tolist() == [[False, True, False, True, True, True]]
    assert chosen("recent", scores, 3).tolist() == [[False, False, False, True, True, True]]
    assert recall_frac(scores[:, :1], chosen("snapkv", scores, 3, pooled=1)) == pytest.approx(0.7)


def test_pooling_keeps_neighbours():
    scores = np.zeros((1, 2, 12))
    scores[:, :, 4] = 1.0
    assert np.flatnonzero(chosen("snapkv", scores, 5, pooled=3)[0]).tolist() == [3, 4, 5, 10, 11]


@pytest.mark.parametrize("seed", range(4))
def test_planted_hitters_are_found_and_lots_miss_them(seed):
    maps, heavy = drawn_maps(AttentionLaw(), 1024, 32, seed)
    scores, later = maps[:, :-32], maps[:, -32:]
    found = {way: chosen(way, scores, 160, seed=seed) for way in WAYS}
    recall = {way: recall_frac(later, kept) for way, kept in found.items()}
    assert recall["snapkv"] > 0.6 > recall["random"] + 0.2
    assert recall["snapkv"] > recall["recent"]
    assert (found["snapkv"] & heavy).sum() > 0.9 * heavy.sum() > 3 * (found["random"] & heavy).sum()
    assert all(kept.sum(axis=1).tolist() == [160] * 4 for kept in found.values())


def test_without_hitters_no_choice_is_better_than_another():
    maps, _ = drawn_maps(AttentionLaw(strength_ratio=0.0, drift_ratio=0.0, near_tokens=1e-9), 1024, 32, 0)
    scores, later = maps[:, :-32], maps[:, -32:]
    recall = [recall_frac(later, chosen(way, scores, 256)) for way in ("snapkv", "random")]
    assert recall[0] == pytest.approx(recall[1], abs=0.03)


@given(budget=st.integers(1, 300), way=st.sampled_from(WAYS))
def test_a_budget_is_kept_and_all_of_it_is_everything(budget, way):
    maps, _ = drawn_maps(AttentionLaw(num_heads=2), 128, 4, 1)
    kept = chosen(way, maps[:, :-4], budget)
    assert (kept.sum(axis=1) == min(budget, 128)).all()
    if budget >= 128:
        assert recall_frac(maps[:, -4:], kept) == pytest.approx(1.0)


def test_no_budget_is_refused():
    with pytest.raises(ScenarioError, match="write 1 or more"):
        chosen("snapkv", np.ones((1, 2, 8)), 0)


def test_the_price_of_scoring_by_hand():
    """Two query heads of 4 in 3 layers: 2 x 64 x 4 x 2 x 3 operations a position; its keys and 64 x 2 x 3 scores."""
    assert scoring(2, 4, 3, 100.0) == (3072.0, 100.0 + 8.0 * 384)


def test_within_the_budget_nothing_is_scored(deploy):
    cut = Compression(budget_tokens=512, window_tokens=64, flops_per_token=1e9, score_bytes_per_token=1e6)
    assert compressing_s(deploy(), cut, 512) == 0.0 < compressing_s(deploy(), cut, 513)


def test_what_a_decode_sees_by_hand():
    """A prompt of 100 cut to 30: behind 110 tokens are 40, and at half of the bytes 20."""
    cut = Compression(budget_tokens=30, prompt_tokens=100.0)
    assert seen_tokens(cut, np.array([110.0])).tolist() == [40.0]
    half = Compression(budget_tokens=30, prompt_tokens=100.0, kept_bytes_frac=0.5)
    assert seen_tokens(half, np.array([110.0])).tolist() == [20.0]
    assert kept_tokens(cut, 100) == 30
