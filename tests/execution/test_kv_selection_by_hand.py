"""Cached positions that are kept, and the attention maps they are judged on, worked out by hand."""

from dataclasses import asdict

import numpy as np
import pytest

from orrery.execution.kv_selection import AttentionLaw, chosen, drawn_maps, recall_frac, scoring


def test_positions_that_stay_cached():
    """One head, a window of two of eight: sums 4, 0, 3, 0, 0, 5 before it."""
    scores = np.zeros((1, 2, 8))
    scores[0, 0] = [3, 0, 3, 0, 0, 2, 9, 9]
    scores[0, 1] = [1, 0, 0, 0, 0, 3, 9, 9]

    def kept(way, budget, **given):
        return np.flatnonzero(chosen(way, scores, budget, **given)[0]).tolist()

    assert kept("snapkv", 4, pooled=1) == [0, 5, 6, 7]
    assert kept("snapkv", 3, pooled=3) == [1, 6, 7]  # neighbours: 4, 7, 3, 3, 5, 5
    assert kept("recent", 4) == [4, 5, 6, 7]
    assert kept("recent", 1) == [7]
    assert kept("snapkv", 2) == [6, 7]
    assert kept("random", 9) == list(range(8))
    assert len(kept("random", 5)) == 5
    maps = np.array([[[0.5, 0.25, 0.25]]])
    assert recall_frac(maps, np.array([[True, False, True]])) == 0.75
    assert recall_frac(0 * maps, np.array([[True, False, True]])) == 0.0
    assert scoring(4, 16, 3.0, 100.0) == (2 * 64 * 16 * 4 * 3.0, 100.0 + 8 * 64 * 4 * 3.0)


def test_maps_that_are_drawn():
    law = AttentionLaw()
    assert asdict(law) == {
        "num_heads": 4,
        "hitters_frac": 0.004,
        "run_tokens": 4,
        "strength_ratio": 5.0,
        "drift_ratio": 1.0,
        "near_tokens": 32.0,
    }
    maps, heavy = drawn_maps(law, 1000, 10, 0)
    assert maps.shape == (4, 74, 1000)
    assert maps.sum(axis=2) == pytest.approx(np.ones((4, 74)))
    assert 12 <= heavy[0].sum() <= 16  # four runs of four, which may overlap
    assert maps[0, 0, 937:].sum() == 0.0  # the first of the window stands at 936
    assert maps[0, 0, 936] > 0.0
    assert maps[:, :, :].transpose(1, 0, 2)[:, heavy].mean() > 20 * maps.mean()
