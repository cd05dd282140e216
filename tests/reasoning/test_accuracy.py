"""Laws of tries, votes and checks, beside drawing and counting; and the choices that follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.reasoning.accuracy import odds
from orrery.reasoning.budget import Split, Trial, growth
from orrery.reasoning.choice import Choice
from orrery.reasoning.coverage import Difficulty, coverage, gain_frac, saturation_tries
from orrery.reasoning.frontier import cheapest, frontier
from orrery.reasoning.vote import Checker, WrongAnswers, checked_frac, majority_frac


def test_tries_and_rounds_obey_one_law():
    random = np.random.default_rng(1)
    side_by_side = (random.random((200_000, 4)) < 0.2).any(axis=1).mean()
    rounds = (random.geometric(0.2, 200_000) <= 4).mean()
    assert (side_by_side, rounds) == pytest.approx((float(coverage(0.2, 4)),) * 2, abs=0.005)


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


def test_a_majority_of_three_by_hand():
    p, one, random = np.array([0.6]), WrongAnswers(num_answers=1), np.random.default_rng(0)
    assert majority_frac(p, 3, one, random) == pytest.approx(0.6**3 + 3 * 0.6**2 * 0.4)
    assert majority_frac(p, 2, one, random) == pytest.approx(0.6)


@pytest.mark.parametrize("votes", [1, 2, 5, 12])
def test_votes_agree_with_counting_drawn_ones(votes):
    wrong, random = WrongAnswers(num_answers=4), np.random.default_rng(0)
    cast = random.multinomial(votes, [0.35, *(0.65 * wrong.shares())], 100_000)
    is_best = cast == cast.max(axis=1, keepdims=True)
    drawn = (is_best[:, 0] / is_best.sum(axis=1)).mean()
    assert majority_frac(np.array([0.35]), votes, wrong, random) == pytest.approx(drawn, abs=0.01)


def test_votes_make_certain_whatever_is_likeliest():
    random, wrong = np.random.default_rng(0), WrongAnswers(num_answers=3, rank_ratio=0.0)
    assert majority_frac(np.array([0.4]), 300, wrong, random) > 0.99
    assert majority_frac(np.array([0.2]), 300, wrong, random) < 0.25


@given(st.floats(0.001, 0.499), st.integers(1, 200))
def test_a_vote_never_helps_a_minority_against_one_wrong_answer(p, votes):
    one, random = WrongAnswers(num_answers=1), np.random.default_rng(0)
    assert majority_frac(np.array([p]), votes, one, random) <= p + 1e-9
    assert majority_frac(np.array([1 - p]), votes, one, random) >= 1 - p - 1e-9


def test_checks_that_say_nothing_pick_by_lot_and_sure_ones_cover():
    p = np.array([0.3])
    blind, sure = Checker(right_frac=0.5, wrong_frac=0.5), Checker(right_frac=1.0, wrong_frac=0.0)
    assert [checked_frac(p, 8, n, blind) for n in (1, 4)] == pytest.approx([0.3, 0.3])
    assert checked_frac(p, 8, 4, sure) == pytest.approx(1 - 0.7**8)


@pytest.mark.parametrize("checks", [1, 5])
def test_checks_agree_with_drawn_ones(checks):
    checker, random = Checker(), np.random.default_rng(0)
    is_right = random.random((100_000, 6)) < 0.3
    mean = np.where(is_right, 0.8, 0.3)
    score = random.binomial(checks, random.beta(2 * mean, 2 * (1 - mean)))
    is_best = score == score.max(axis=1, keepdims=True)
    drawn = ((is_best & is_right).sum(axis=1) / is_best.sum(axis=1)).mean()
    assert checked_frac(np.array([0.3]), 6, checks, checker) == pytest.approx(drawn, abs=0.006)


@given(st.floats(0.01, 0.99), st.integers(1, 300), st.floats(0.5, 1.0))
def test_a_choice_is_never_right_more_often_than_a_right_answer_is_there(p, tries, trust):
    found = checked_frac(np.array([p]), tries, 1, Checker(right_frac=trust, wrong_frac=1 - trust))
    assert p - 1e-9 <= found <= float(coverage(p, tries)) + 1e-9


def test_more_checks_help_and_a_bad_checker_loses_to_votes():
    questions = np.linspace(0.05, 0.95, 400)
    make = {"success_frac": questions, "wrong": WrongAnswers(), "check_ratio": 1.0}
    good, bad = (Trial(**make, checker=Checker(wrong_frac=w)) for w in (0.2, 0.7))
    one, many = good.check(16, [1, 16])
    assert many.right_frac > one.right_frac + 0.03
    assert many.answers_ratio == 16 * 17
    assert bad.vote(16).right_frac > bad.check(16, [16])[0].right_frac


def test_questions_all_alike_are_the_end_of_ever_more_even_ones():
    alike, nearly = (Difficulty(mean_frac=0.3, evenness_ratio=e) for e in (np.inf, 1e6))
    assert alike.coverage(8) == pytest.approx(nearly.coverage(8), rel=1e-4) == pytest.approx(1 - 0.7**8)
    assert alike.bins(5) == [0.3]
    assert Difficulty(mean_frac=1.0).coverage(3) == 1.0


def test_odds_of_rounds_in_chains_and_of_a_verifier_nobody_knows():
    alike, one = Difficulty(mean_frac=0.3, evenness_ratio=np.inf), WrongAnswers(num_answers=1)
    rounds = odds(Choice(by="vote", num_rounds=3), alike, one, None)
    assert (rounds.right_frac, rounds.coverage_frac) == pytest.approx((1 - 0.7**3,) * 2)
    chains = odds(Choice(by="vote", num_rounds=3, num_tries=3), alike, one, None)
    assert chains.coverage_frac == pytest.approx(1 - 0.7**9)
    assert chains.coverage_frac > chains.right_frac > rounds.right_frac
    assert odds(Choice(by="check", num_tries=4), alike, one, None).right_frac is None


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
