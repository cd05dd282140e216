"""The statistics of timing, on a clock that the tests turn themselves."""

import itertools
from statistics import median

import numpy as np
import pytest

from orrery.calibrate.measure.clock import Clock, steady_clock, summarise, time_call, time_samples


class Play:
    """A clock, and a call that takes the next of ``lengths_s`` on it."""

    def __init__(self, lengths_s, step_s=1e-7):
        self.now_s, self.calls = 0.0, 0
        self._lengths_s = iter(lengths_s)
        self.clock = Clock(read=lambda: self.now_s, step_s=step_s)

    def __call__(self):
        self.calls += 1
        self.now_s += next(self._lengths_s)


def test_a_steady_call_takes_what_it_takes():
    play = Play(itertools.repeat(3e-3))
    timed = time_call(play, clock=play.clock)
    assert timed.time_s == pytest.approx(3e-3)
    assert timed.fastest_s == pytest.approx(3e-3)
    assert timed.spread_frac == pytest.approx(0.0, abs=1e-9)
    assert timed.num_outliers == 0


def test_the_first_call_is_told_apart():
    play = Play(itertools.chain([0.5], itertools.repeat(1e-3)))
    timed = time_call(play, clock=play.clock)
    assert timed.first_s == pytest.approx(0.5)
    assert timed.time_s == pytest.approx(1e-3)


def test_warming_up_waits_until_two_samples_agree():
    slow_start = [8e-3, 6e-3, 5e-3, 4e-3, 3e-3, 2.5e-3, 2.2e-3]
    play = Play(itertools.chain(slow_start, itertools.repeat(2e-3)))
    timed = time_call(play, clock=play.clock)
    assert timed.time_s == pytest.approx(2e-3)
    assert timed.num_outliers == 0


def test_warming_up_ends_on_a_call_that_never_settles():
    play = Play(itertools.cycle([1e-3, 2e-3]))
    timed = time_call(play, clock=play.clock, budget_s=0.1)
    assert 0.99e-3 <= timed.time_s <= 2.01e-3
    assert timed.num_outliers == 0
    assert timed.spread_frac > 0.1


@pytest.mark.parametrize("length_s", [1e-9, 4e-8, 1e-5])
def test_a_sample_is_long_beside_the_step_of_the_clock(length_s):
    step_s, requested = 1e-6, []

    def sample(repeats):
        requested.append(repeats)
        return step_s * np.floor(repeats * length_s / step_s)  # a clock that only knows whole steps

    timed = time_samples(sample, step_s=step_s, budget_s=0.01, least_samples=7)
    assert requested[-1] * length_s >= 99 * step_s
    assert timed.time_s == pytest.approx(length_s, rel=0.011)


def test_waiting_for_an_idle_device_counts_as_a_step():
    play = Play(itertools.repeat(1e-6))
    timed = time_call(play, synchronise=lambda: setattr(play, "now_s", play.now_s + 1e-4), clock=play.clock)
    assert timed.time_s == pytest.approx(1e-6, rel=0.02)


def test_the_budget_is_kept():
    play = Play(itertools.repeat(1e-3))
    time_call(play, clock=play.clock, budget_s=0.2)
    assert 0.2 <= play.now_s <= 0.25


def test_slow_calls_get_their_least_samples_and_no_more():
    play = Play(itertools.repeat(0.1))
    assert time_call(play, clock=play.clock, budget_s=0.25, least_samples=7).num_samples == 7


def test_far_too_slow_calls_get_three():
    play = Play(itertools.repeat(10.0))
    assert time_call(play, clock=play.clock, budget_s=0.25, least_samples=7).num_samples == 3


def test_outliers_are_dropped_and_counted():
    rng = np.random.default_rng(1)
    clean = list(1e-3 * (1 + 0.02 * rng.standard_normal(40)))
    timed = summarise([*clean, 0.1, 0.2, 0.3], first_s=1.0)
    assert timed.num_outliers >= 3
    assert timed.num_samples + timed.num_outliers == 43
    assert timed.time_s == pytest.approx(1e-3, rel=0.02)


def test_the_spread_is_the_standard_deviation_of_normal_samples():
    samples = list(1.0 + 0.05 * np.random.default_rng(2).standard_normal(4000))
    assert summarise(samples, first_s=1.0).spread_frac == pytest.approx(0.05, rel=0.1)


def test_the_middle_is_robust_where_a_mean_is_not():
    samples = [1.0] * 20 + [50.0] * 9
    assert summarise(samples, first_s=1.0).time_s == median(samples) == 1.0


def test_differences_below_the_step_are_no_outliers():
    assert summarise([1.0] * 20 + [1.01], first_s=1.0).num_outliers == 0


def test_of_a_few_samples_none_is_an_outlier():
    assert summarise([1.0, 1.0, 9.0], first_s=1.0).num_outliers == 0


def test_one_of_several_ops_in_a_call():
    timed = summarise([2.0, 4.0, 4.0, 4.0, 6.0], first_s=8.0)
    half = timed.over(4)
    assert (half.time_s, half.fastest_s, half.first_s) == (1.0, 0.5, 2.0)
    assert half.spread_frac == timed.spread_frac


def test_the_machines_own_clock_has_a_step():
    assert 0 < steady_clock().step_s < 0.1
