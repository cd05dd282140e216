"""Solve or verify: votes and checks over drawn questions, at equal tokens."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.answer_studies import Study
from orrery_papers.shared.answered import reasoned, study

DIFFERS = "the verifier's rates of yes, and how answers are distributed, which are drawn here"
ANSWER_TOKENS = 500
"""Tokens of an answer: everything is counted in answers, so their number cancels."""

DEVICE = "h100-sxm"
"""Nor does the device count."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Checks needed to catch up with votes, then the growth of the best split."""
    found = split(paper.setups["math128"])
    figures = found.figures
    words = (
        f"{percent(figures['vote_right_frac'], 1)} right by votes; checks reach what votes ever get, to half a point, "
        f"at {figures['catch_up_tokens'] / ANSWER_TOKENS:.0f} answers' worth of tokens"
    )
    yield Prediction(claim="compute-to-match", predicted=figures["catch_up_ratio"], because=words, differs=DIFFERS)
    steps = " -> ".join(f"{row['num_solutions']} x {row['num_checks']}" for row in found.rows if row["num_checks"])
    for claim, name in (("solutions-exponent", "solutions"), ("checks-exponent", "checks")):
        yield Prediction(
            claim=claim, predicted=figures[f"{name}_exponent"], because=f"best splits {steps}", differs=DIFFERS
        )


def split(setup: Setup) -> Study:
    """``orrery estimate --reasoning generative-verification`` with a budget of the most answers and checks."""
    most = max(setup.numbers("tries_swept")) * (1.0 + setup.number("check_ratio") * max(setup.numbers("checks_swept")))
    knobs = {
        "check_ratio": setup.number("check_ratio"),
        "budget_tokens": most * ANSWER_TOKENS,
        "check_right_frac": setup.number("check_right_frac"),
        "check_wrong_frac": setup.number("check_wrong_frac"),
        "check_evenness": setup.number("check_evenness_ratio"),
        "wrong_rank": setup.number("wrong_rank_ratio"),
        "most_checks": int(max(setup.numbers("checks_swept"))),
    }
    found = reasoned(
        "generative-verification",
        knobs,
        model=setup.word("model"),
        device=DEVICE,
        batch=1,
        input_tokens=100,
        output_tokens=ANSWER_TOKENS,
        success=setup.number("one_try_frac"),
        evenness=setup.number("difficulty_evenness_ratio"),
        wrong_answers=int(setup.number("num_wrong_answers")),
    )
    return study(found, "split")
