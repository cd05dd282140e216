"""Laws of tries, votes and checks, beside drawing and counting; and the choices that follow."""

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.reasoning.allocate import allocate, saving_ratio, solved_frac
from orrery.reasoning.budget import Split, Trial, growth
from orrery.reasoning.conformal import measured_frac, threshold
from orrery.reasoning.coverage import Difficulty, absorbed, coverage, drawn_coverage, gain_frac, saturation_tries
from orrery.reasoning.frontier import best_within, cheapest, frontier
from orrery.reasoning.regret import Stream
from orrery.reasoning.vote import Checker, WrongAnswers, checked_fracs, majority_frac


def test_tries_and_rounds_obey_one_law():
    for n in (1, 3, 10):
        assert absorbed(0.2, n) == pytest.approx(float(coverage(0.2, n)), abs=1e-12)
    assert absorbed(0.2, 3, first_frac=0.5) == pytest.approx(1 - 0.5 * 0.8**3)
    drawn = drawn_coverage(0.2, 4, 200_000, np.random.default_rng(1))
    assert drawn == pytest.approx((1 - 0.8**4,) * 2, abs=0.005)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_saturation_is_the_first_try_after_which_gains_are_small(p):
    n = saturation_tries(p, 0.01, 0.8)
    assert gain_frac(p, n, 0.8) <= 0.01 < gain_frac(p, n - 1, 0.8)


def test_saturation_at_its_ends():
    assert saturation_tries(0.005, 0.01) == 0
    assert saturation_tries(1.0, 0.01) == 1
    with pytest.raises(ScenarioError, match="success_frac = 0"):
        saturation_tries(0.0, 0.01)


@pytest.mark.parametrize("evenness", [0.3, 1.0, 5.0])
def test_a_beta_of_difficulties_agrees_with_drawing_and_with_its_bins(evenness):
    law = Difficulty(mean_frac=0.3, evenness_ratio=evenness)
    p = np.random.default_rng(0).beta(0.3 * evenness, 0.7 * evenness, 400_000)
    assert law.coverage(1) == pytest.approx(0.3)
    assert law.coverage(8) == pytest.approx(float(coverage(p, 8).mean()), abs=0.004)
    bins = law.bins(5)
    assert bins.mean() == pytest.approx(0.3, abs=1e-3)
    assert bins == pytest.approx(np.sort(p).reshape(5, -1).mean(axis=1), abs=0.004)


def test_alike_questions_are_covered_faster():
    assert Difficulty(mean_frac=0.3, evenness_ratio=10).coverage(16) > Difficulty(mean_frac=0.3).coverage(16) + 0.2


def test_allocation_is_the_best_of_all():
    chances, total = [0.05, 0.3, 0.8], 9
    best = max(
        (solved_frac(chances, (a, b, total - a - b)), (a, b, total - a - b))
        for a in range(1, 8) for b in range(1, 9 - a)
    )  # fmt: skip
    assert tuple(allocate(chances, total)) == best[1]


def test_dealing_tries_by_difficulty_saves_where_difficulties_differ():
    assert saving_ratio([0.2, 0.2, 0.2], 8) == 1.0
    assert saving_ratio([0.01, 0.2, 0.9], 32) > 1.5


def test_a_majority_of_three_by_hand():
    p, one = np.full(40_000, 0.6), WrongAnswers(num_answers=1)
    assert majority_frac(p, 3, one, np.random.default_rng(0)) == pytest.approx(0.6**3 + 3 * 0.6**2 * 0.4, abs=0.01)
    assert majority_frac(p, 2, one, np.random.default_rng(0)) == pytest.approx(0.6, abs=0.01)


def test_votes_make_certain_whatever_is_likeliest():
    random, wrong = np.random.default_rng(0), WrongAnswers(num_answers=3, rank_ratio=0.0)
    assert majority_frac(np.full(2000, 0.4), 300, wrong, random) > 0.99
    assert majority_frac(np.full(2000, 0.2), 300, wrong, random) < 0.25


def test_checks_that_say_nothing_pick_by_lot_and_sure_ones_cover():
    p, random = np.full(20_000, 0.3), np.random.default_rng(0)
    blind = Checker(right_frac=0.5, wrong_frac=0.5)
    assert checked_fracs(p, 8, [1, 4], blind, random) == pytest.approx([0.3, 0.3], abs=0.015)
    sure = Checker(right_frac=0.999, wrong_frac=0.001, evenness_ratio=100)
    assert checked_fracs(p, 8, [4], sure, random) == pytest.approx([1 - 0.7**8], abs=0.015)


def test_more_checks_help_and_a_bad_checker_loses_to_votes():
    questions = np.linspace(0.05, 0.95, 400)
    make = {"success_frac": questions, "wrong": WrongAnswers(), "check_ratio": 1.0}
    good, bad = (Trial(**make, checker=Checker(wrong_frac=w)) for w in (0.2, 0.7))
    one, many = good.check(16, [1, 16])
    assert many.right_frac > one.right_frac + 0.03
    assert many.answers_ratio == 16 * 17
    assert bad.vote(16).right_frac > bad.check(16, [16])[0].right_frac


def test_growth_finds_the_powers_that_it_was_given():
    splits = [
        Split(num_solutions=2**i, num_checks=2**j, answers_ratio=4.0**k, right_frac=0.0)
        for k, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (3, 3)])
    ]
    assert growth(splits) == pytest.approx({"solutions": 0.5, "checks": 0.5})


def test_a_frontier_keeps_what_nothing_cheaper_reaches():
    ways = [(1, 0.1), (2, 0.5), (2, 0.4), (3, 0.5), (4, 0.9)]
    front = frontier(ways, lambda w: w[0], lambda w: w[1])
    assert front == [(1, 0.1), (2, 0.5), (4, 0.9)]
    assert cheapest(front, lambda w: w[1], 0.45) == (2, 0.5)
    assert cheapest(front, lambda w: w[1], 0.95) is None
    assert best_within(front, lambda w: w[0], 3.5) == (2, 0.5)
    assert best_within(front, lambda w: w[0], 0.5) is None


@pytest.mark.parametrize("alpha", [0.1, 0.4])
def test_a_conformal_threshold_rejects_what_was_asked_for(alpha):
    random = np.random.default_rng(0)
    found = [measured_frac(random.gumbel(size=99), random.gumbel(size=200), alpha) for _ in range(400)]
    assert alpha - 0.01 - 0.01 < np.mean(found) < alpha + 0.01
    assert threshold(np.arange(1.0, 10.0), 0.5) == 5.0
    assert threshold(np.arange(3.0), 0.1) == -np.inf


def test_stopping_when_done_needs_fewer_episodes_and_regret_adds_up():
    stream = Stream(difficulty=Difficulty(mean_frac=0.5, evenness_ratio=2.0), num_episodes=4)
    assert stream.needed_episodes() == pytest.approx(1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert stream.regret_episodes() == pytest.approx(1 / 2 + 1 / 3 + 1 / 4 + 1 / 5)
    assert stream.progress() == pytest.approx([1 / 2, 1 / 6, 1 / 12, 1 / 20])
    assert stream.progress().sum() == pytest.approx(stream.solved_frac()) == pytest.approx(0.8)
    assert Stream(difficulty=stream.difficulty, num_episodes=1).saving_ratio() == 1.0
