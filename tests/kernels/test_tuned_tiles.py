"""Tiles tuned on the spot: never worse than what was shipped, within the budget, and by hand where it is small."""

from dataclasses import replace

import pytest

from orrery.catalog.devices import get_device
from orrery.kernels.gemm.naive_tiles import tiled_run
from orrery.kernels.gemm.tuned_tiles import Tuner, tuned

DEVICE = get_device("l4")
SHAPES = ((128, 768, 768), (128, 3072, 768))
TUNER = Tuner(tiles=(4, 8, 16, 24), shipped_tile=8, compile_s=0.1, num_trials=3, dispatch_s=1e-5, budget_s=30.0)


def test_the_best_of_the_candidates_is_taken():
    found = tuned(SHAPES, DEVICE, TUNER)
    assert found.tiles == tuple(
        min(TUNER.tiles, key=lambda t, s=shape: tiled_run(*s, t, DEVICE).time_s) for shape in SHAPES
    )
    assert found.num_tried == 8
    assert found.tuning_s == pytest.approx(0.8, abs=0.02)
    assert found.tuned_s < found.shipped_s


def test_nothing_is_tuned_without_time():
    found = tuned(SHAPES, DEVICE, replace(TUNER, budget_s=0.0))
    assert (found.num_tried, found.tuned_s, found.tiles) == (0, found.shipped_s, (8, 8))


def test_the_budget_holds():
    found = tuned(SHAPES, DEVICE, replace(TUNER, budget_s=0.35))
    assert found.num_tried == 3
    assert found.tuning_s <= 0.35
    assert found.tiles[1] == 8
