"""Budgets dealt out by difficulty, thresholds that are calibrated, and the program of a search."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.reasoning.by_difficulty import COUNTS, Law, best_allocation, mean_right, saving_ratio, uniform
from orrery.reasoning.conformal import Calibrated, calibrated
from orrery.reasoning.coverage import saturation_tries
from orrery.reasoning.tree.grown import Front
from orrery.reasoning.tree.techniques.shared_cache_tree import Knobs, kept_of
from orrery.reasoning.vote import Checker


def test_laws_by_hand():
    law = Law(spoil_frac=0.5)
    assert law.right_frac("samples", 0.5, 2) == pytest.approx(0.75)
    assert law.right_frac("search", 0.5**8, 1) == pytest.approx(0.5**8)
    assert law.right_frac("search", 0.5**8, 2) == pytest.approx(0.75**8)
    assert law.right_frac("revision", 0.5, 1) == pytest.approx(0.5)


@pytest.mark.parametrize("law", [Law(), Law(checker=Checker(right_frac=0.8, wrong_frac=0.2), spoil_frac=0.1)])
def test_the_best_allocation_is_that_of_trying_all(law):
    bins, budget = [0.1, 0.4, 0.8], 4
    options = [(way, n) for way in ("samples", "search", "revision") for n in COUNTS if n <= 8]
    tried = (
        sum(law.right_frac(way, p, n) for p, (way, n) in zip(bins, choice, strict=True)) / 3
        for choice in product(options, repeat=3)
        if sum(n for _, n in choice) <= 3 * budget
    )
    assert mean_right(best_allocation(bins, budget, law)) == pytest.approx(max(tried))


def test_equal_difficulty_gains_nothing():
    law = Law(checker=Checker(right_frac=0.8, wrong_frac=0.2), spoil_frac=0.1)
    best = max(("samples", "search", "revision"), key=lambda way: uniform([0.3] * 3, 16, law, way))
    assert saving_ratio([0.3], 16, Law(spoil_frac=1.0), "search") >= 1.0
    assert mean_right(best_allocation([0.3], 16, law)) >= uniform([0.3], 16, law, best)


@given(bins=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4), budget=st.sampled_from(COUNTS[:5]))
@settings(max_examples=25, deadline=None)
def test_dealing_out_never_loses_and_keeps_the_budget(bins, budget):
    law = Law(spoil_frac=0.1)
    found = best_allocation(bins, budget, law)
    assert sum(c.num_answers for c in found) <= budget * len(bins)
    for way in ("samples", "search", "revision"):
        assert mean_right(found) >= uniform(bins, budget, law, way) - 1e-9


@pytest.mark.parametrize("level", [0.0, 0.1, 0.4, 0.9])
def test_held_out_scores_are_rejected_as_often_as_asked(level):
    scores = np.random.default_rng(1).beta(4, 2, 4000)
    found = calibrated(scores, level)
    assert found.rejected_frac == pytest.approx(level, abs=4 * found.spread_frac + 1e-9)
    assert found.num_calibrated == found.num_checked == 2000


def test_the_threshold_by_hand():
    """Of 4 scores in the first half, level 0.4 is the floor(0.4 x 5) = 2nd smallest."""
    scores = np.arange(8.0)
    order = np.random.default_rng(0).permutation(8)
    assert calibrated(scores, 0.4).threshold_frac == sorted(scores[order[:4]])[1]
    with pytest.raises(ScenarioError, match="rejection_level"):
        calibrated(scores, 1.0)


def test_the_spread_of_what_is_rejected_by_hand():
    """0.2 x 0.8 over 14 + 2 scores behind the threshold, and over four that are checked: 0.01 + 0.04."""
    found = Calibrated(threshold_frac=0.5, level_frac=0.2, rejected_frac=0.25, num_calibrated=14, num_checked=4)
    assert found.spread_frac == pytest.approx(0.05**0.5)


def test_the_advised_tries_are_those_of_draws():
    """Gains of 0.9 x 0.3 x 0.7^n: the closed form, against a Monte Carlo of first successes."""
    draws = np.random.default_rng(0).geometric(0.3, 200_000)
    gains = [0.9 * float((draws == n + 1).mean()) for n in range(30)]
    advised = saturation_tries(0.3, 0.02, 0.9)
    assert gains[advised - 1] >= 0.02 - 1e-3 > gains[advised] - 2e-3


def front(seed, count=6, depth=2):
    draws = np.random.default_rng(seed)
    paths = np.stack([np.zeros(count, np.int64), *(1 + draws.integers(0, 3, count) for _ in range(depth - 1))], axis=1)
    return Front(
        scores_frac=draws.random(count), paths=paths, ideas=draws.integers(0, 3, count), branches=np.arange(count) % 2
    )


def worth_of(front, kept, knobs, width=8):
    from orrery.reasoning.tree.shares import by_softmax

    shares = by_softmax(front.scores_frac, width, knobs.score_temperature_ratio)
    worth, nodes, ideas = shares / shares.sum(), np.unique(front.paths), np.unique(front.ideas)
    held = len({int(n) for row in front.paths[kept] for n in row}) + kept.sum()
    prize = knobs.idea_price_ratio / ideas.size if ideas.size > 1 else 0.0
    price = knobs.node_price_ratio / (nodes.size + worth.size)
    return worth[kept].sum() - price * held + prize * len(set(front.ideas[kept].tolist()))


@pytest.mark.parametrize("seed", range(6))
def test_the_program_of_a_step_is_solved(seed):
    """No subset of the candidates is worth more."""
    given_front, knobs = front(seed), Knobs()
    found = worth_of(given_front, kept_of(given_front, 8, knobs), knobs)
    subsets = (np.array(bits, bool) for bits in product((0, 1), repeat=6) if any(bits))
    assert found == pytest.approx(max(worth_of(given_front, one, knobs) for one in subsets))


def test_each_weight_changes_the_tree():
    kept = [kept_of(front(3, 12, 3), 8, knobs) for knobs in (Knobs(node_price_ratio=0.0), Knobs(node_price_ratio=4.0))]
    assert kept[0].sum() > kept[1].sum()
    plain = [kept_of(front(3, 12, 3), 8, Knobs(node_price_ratio=4.0, idea_price_ratio=x)) for x in (0.0, 6.0)]
    assert plain[1].sum() > plain[0].sum()
