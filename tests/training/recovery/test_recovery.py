"""Lost stages: gradients against differences, what a stage made from neighbours costs, and three ways against draws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from played_stages import play_steps

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.recovery.measured import (
    replace_stage,
    setbacks,
    steps_with_losses,
    train,
)
from orrery.training.recovery.network import Model, Shape, Text
from orrery.training.recovery.strategies import (
    StageFaults,
    computed_twice,
    from_neighbours,
    rolled_back,
)

TINY = Shape(num_stages=4, hidden_size=8, ffn_size=16, vocab_size=8, num_batch=32)
FAULTS = StageFaults(num_stages=6, hourly_failure_frac=0.1, replace_s=30.0)


@pytest.fixture(scope="module")
def trained():
    """A short run without failures, and its model towards the end."""
    return train(TINY, 160, [140])


def test_training_lowers_the_loss_towards_what_the_text_allows(trained):
    assert trained.losses[0] == pytest.approx(math.log(8), rel=0.25)
    assert trained.losses[-1] < 0.9 * trained.losses[0]


@pytest.mark.parametrize("swaps", [False, True])
def test_gradients_are_those_of_small_differences(swaps):
    text, model = Text(TINY, 0), Model(TINY, 0)
    context, target = text.batch(16)
    seen = {}
    model._adam = seen.update  # type: ignore[method-assign]
    model.step(context, target, swaps_ends=swaps)
    orders = [[0, 1, 2, 3], [1, 0, 3, 2]] if swaps else [[0, 1, 2, 3]] * 2

    def loss():
        halves = [(context[:8], target[:8], orders[0]), (context[8:], target[8:], orders[1])]
        return -sum(model._forward(c, o)[0][np.arange(8), t].sum() for c, t, o in halves) / 16

    draws = np.random.default_rng(1)
    for name, weights in model.weights.items():
        for _ in range(4):
            place = tuple(int(draws.integers(n)) for n in weights.shape)
            saved = weights[place]
            ends = []
            for change in (1e-5, -1e-5):
                weights[place] = saved + change
                ends.append(loss())
            weights[place] = saved
            assert seen[name][place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)


def test_a_new_stage_is_the_weighted_mean_and_starts_afresh(trained):
    model = trained.models[0].copy()
    model.gradient_squares[:] = [3.0, 9.0, 1.0, 1.0]
    replace_stage(model, 1, "weighted")
    up = model.weights["up"]
    assert np.allclose(up[1], 0.75 * up[0] + 0.25 * up[2])
    assert model.stage_steps[1] == 0.0
    assert model.stage_rate_ratio[1] == 1.1
    assert not model.means["up"][1].any()
    replace_stage(model, 0, "weighted")
    replace_stage(model, 3, "mean")
    assert np.allclose(up[0], up[1])
    assert np.allclose(up[3], up[2])
    with pytest.raises(ScenarioError, match="write a stage from 0"):
        replace_stage(model, 4, "mean")


def test_neighbours_are_nearer_than_chance(trained):
    mean, chance = (setbacks(trained, [1, 2], way, most_steps=80) for way in ("weighted", "random"))
    assert sum(s.loss_jump_ratio for s in mean) < sum(s.loss_jump_ratio for s in chance)
    assert sum(s.num_steps for s in mean) < sum(s.num_steps for s in chance)
    assert all(s.num_steps <= 80 for s in chance)


def test_more_losses_take_more_steps():
    none, some = (steps_with_losses(TINY, 100, frac, most_ratio=3.0) for frac in (0.0, 0.1))
    assert 90 <= none <= 130
    assert some > none


def test_a_step_loses_a_stage_as_often_as_its_hour_says():
    assert FAULTS.step_failure_frac(600.0) == pytest.approx(0.1)
    assert replace(FAULTS, hourly_failure_frac=0.0).step_failure_frac(600.0) == 0.0


@pytest.mark.parametrize("interval", [10, 37])
def test_rolling_back_is_as_drawn(interval):
    found = rolled_back(FAULTS, 1000, 91.0, interval)
    drawn = play_steps(FAULTS, 1000, 91.0, interval_steps=interval, num_runs=400)
    assert found.steps == pytest.approx(drawn.mean(), rel=0.03)
    assert found.num_failures == pytest.approx(found.steps * FAULTS.step_failure_frac(91.0))
    assert found.time_s == pytest.approx(found.steps * 91.0 + found.num_failures * 30.0)


def test_setbacks_are_as_drawn():
    found = from_neighbours(FAULTS, 2000, 91.0, 20.0)
    drawn = play_steps(FAULTS, 2000, 91.0, setback_steps=20.0, num_runs=400)
    assert found.steps == pytest.approx(drawn.mean(), rel=0.03)


def test_limits_and_order_of_the_three_ways():
    never = replace(FAULTS, hourly_failure_frac=0.0)
    assert rolled_back(never, 1000, 91.0, 100, save_s=2.0).time_s == 1000 * 91.0 + 20.0
    assert from_neighbours(never, 1000, 91.0, 50.0).steps == 1000.0
    assert computed_twice(FAULTS, 1000, 90.0).step_s == pytest.approx(120.0)
    assert computed_twice(FAULTS, 1000, 90.0, step_ratio=1.5).step_s == 135.0
    rare = replace(FAULTS, hourly_failure_frac=0.001)
    times = [f.time_s for f in (from_neighbours(rare, 1000, 91.0, 30.0), rolled_back(rare, 1000, 91.0, 100))]
    assert times[0] < times[1] < computed_twice(rare, 1000, 91.0).time_s
    with pytest.raises(OutOfRange, match="training stands still"):
        from_neighbours(FAULTS, 1000, 91.0, 100.0)
    with pytest.raises(OutOfRange, match="save more often"):
        rolled_back(replace(FAULTS, hourly_failure_frac=0.9), 10_000, 900.0, 1000)
