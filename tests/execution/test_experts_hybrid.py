"""Experts between device and host: greedy shares are never worse than fixed ones where they may choose, and bounded."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.experts.hybrid import Shares, Trace, decoded_fixed, decoded_greedy, fixed, greedy

SHARES = Shares(device_s=lambda n: 0.1 + 0.001 * n, host_s=lambda n: 0.2 + 0.1 * n, load_s=1.0)
TRACE = Trace(num_layers=4, num_experts=16, experts_per_token=4, repeat_frac=0.7, num_tokens=60)


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


def test_tokens_repeat_the_experts_of_the_last_one():
    def repeats(frac):
        chosen = (t := replace(TRACE, repeat_frac=frac)).chosen(t.scores())
        rows = [zip(x.tolist(), y.tolist(), strict=True) for x, y in pairwise(chosen)]
        return np.mean([len(set(a) & set(b)) for row in rows for a, b in row])

    assert repeats(0.0) == pytest.approx(4 * 4 / 16, rel=0.15)
    assert repeats(0.9) > 2.0 * repeats(0.0)


def test_a_cache_that_follows_the_tokens_gains_more_where_they_repeat():
    def gain(frac):
        trace = replace(TRACE, repeat_frac=frac)
        return decoded_fixed(trace, SHARES, 0.5) / decoded_greedy(trace, SHARES, 0.5, 0.2)

    assert gain(0.9) > gain(0.0) >= 1.0


def test_with_everything_kept_there_is_nothing_to_gain_but_help():
    assert decoded_greedy(TRACE, SHARES, 1.0, 0.2) <= decoded_fixed(TRACE, SHARES, 1.0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ScenarioError, match="repeat_frac"):
        replace(TRACE, repeat_frac=1.0)
