"""TTSPM: what the shared law of tries and rounds says that many tries gain, held against a recorded gain."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.reasoning.coverage import coverage, saturation_tries


def predict(paper: Paper) -> Iterator[Prediction]:
    """Accuracy of all tries less that of one."""
    (claim,) = (claim for claim in paper.claims if not claim.missing)
    setup = claim.setup
    once, tries, ceiling = setup.number("success_frac"), setup.number("num_tries"), setup.number("ceiling_frac")
    enough = saturation_tries(once / ceiling, setup.number("least_gain_frac"), ceiling)
    found = ceiling * float(coverage(once / ceiling, tries))
    yield Prediction(
        claim=claim.id, predicted=found - once,
        because=f"{found:.1%} of questions alike have a right answer among {tries:g}; after {enough} tries another one "
        "adds less than a point",
        differs="questions that are not alike, some of which no try solves, and the vote that has to find a right "
        "answer among the others; both need recorded answers of the trained model",
    )  # fmt: skip
