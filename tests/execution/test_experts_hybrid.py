"""Experts between device and host: greedy shares are never worse than fixed ones where they may choose, and bounded."""

import numpy as np
import pytest

from orrery.execution.experts.hybrid import Shares, faded, fixed, greedy

SHARES = Shares(device_s=lambda n: 0.1 + 0.001 * n, host_s=lambda n: 0.2 + 0.1 * n, load_s=1.0)


def test_fixed_shares_take_the_longer_side():
    done = fixed({0: 10, 1: 5, 2: 1}, frozenset({0}), SHARES)
    assert done.time_s == pytest.approx(max(0.11, 0.7 + 0.3))


def test_a_large_load_comes_over_the_link_and_a_small_one_stays():
    done = greedy({0: 100, 1: 1}, frozenset(), SHARES)
    assert done.loaded == (0,)
    assert done.time_s == pytest.approx(1.0 + 0.2)


def test_an_idle_host_helps_the_device():
    slow = Shares(device_s=lambda n: 1.0, host_s=lambda n: 1.0, load_s=9.0)
    assert greedy(dict.fromkeys(range(8), 1), frozenset(range(8)), slow).time_s == pytest.approx(4.0)
    assert fixed(dict.fromkeys(range(8), 1), frozenset(range(8)), slow).time_s == pytest.approx(8.0)


def test_greedy_is_no_slower_than_fixed():
    draws = np.random.default_rng(0)
    for _ in range(100):
        work = {e: int(n) for e, n in enumerate(draws.integers(1, 200, 8))}
        retained = frozenset(draws.permutation(8)[:3].tolist())
        assert greedy(work, retained, SHARES).time_s <= fixed(work, retained, SHARES).time_s + 1e-12


def test_faded_scores_by_hand():
    """Two tokens of one expert each, so that the best two of four count: half of the old, half of their mean."""
    probabilities = np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4]])
    found = faded(np.array([1.0, 0.0, 0.0, 0.2]), probabilities, 1)
    assert found == pytest.approx([0.5 + 0.125, 0.075, 0.075, 0.1 + 0.1])
    assert faded(np.zeros(2), np.array([[0.9, 0.1]]), 2) == pytest.approx([0.45, 0.05])
