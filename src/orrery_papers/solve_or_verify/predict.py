"""Solve or verify: votes and checks over drawn questions, at equal tokens."""

from collections.abc import Iterator, Sequence

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.reasoning.budget import Split, Trial, growth
from orrery.reasoning.coverage import Difficulty
from orrery.reasoning.frontier import cheapest, frontier
from orrery.reasoning.vote import Checker, WrongAnswers

NEAR_FRAC = 0.005
"""So close to what voting ever gets counts as matching it: [unstated] plateau."""

DIFFERS = "the verifier's rates of yes, and how answers are distributed, which are drawn here"


def predict(paper: Paper) -> Iterator[Prediction]:
    """What checks need to catch up with votes, then how the best split grows."""
    setup = paper.setups["math128"]
    trial = trial_of(setup)
    solutions, checks = ([int(n) for n in setup.numbers(line)] for line in ("tries_swept", "checks_swept"))
    votes = frontier((trial.vote(n) for n in solutions), _spent, _right)
    checked = frontier((split for n in solutions for split in trial.check(n, checks)), _spent, _right)
    goal = votes[-1].right_frac - NEAR_FRAC
    vote, split = cheapest(votes, _right, goal), cheapest(checked, _right, goal)
    if vote and split:
        words = f"{goal:.1%} right by {vote.num_solutions} votes, or {split.num_solutions} answers x {split.num_checks}"
        yield Prediction(
            claim="compute-to-match", predicted=split.answers_ratio / vote.answers_ratio, because=words, differs=DIFFERS
        )
    yield from _growth(checked)


def _growth(checked: Sequence[Split]) -> Iterator[Prediction]:
    exponents = growth(checked)
    words = " -> ".join(f"{s.num_solutions} x {s.num_checks}" for s in checked)
    for claim, name in (("solutions-exponent", "solutions"), ("checks-exponent", "checks")):
        yield Prediction(claim=claim, predicted=exponents[name], because=f"best splits {words}", differs=DIFFERS)


def trial_of(setup: Setup) -> Trial:
    """The questions and the checker of a set-up."""
    difficulty = Difficulty(
        mean_frac=setup.number("one_try_frac"), evenness_ratio=setup.number("difficulty_evenness_ratio")
    )
    return Trial(
        success_frac=difficulty.bins(int(setup.number("num_problems"))),
        wrong=WrongAnswers(
            num_answers=int(setup.number("num_wrong_answers")), rank_ratio=setup.number("wrong_rank_ratio")
        ),
        checker=Checker(
            right_frac=setup.number("check_right_frac"),
            wrong_frac=setup.number("check_wrong_frac"),
            evenness_ratio=setup.number("check_evenness_ratio"),
        ),
        check_ratio=setup.number("check_ratio"),
    )


def _spent(split: Split) -> float:
    return split.answers_ratio


def _right(split: Split) -> float:
    return split.right_frac
