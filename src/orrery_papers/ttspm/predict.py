"""TTSPM: what the shared law of tries and rounds says that many tries gain, held against a recorded gain."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.reasoning.coverage import coverage
from orrery.scenario.ask import Answer, estimate


def predict(paper: Paper) -> Iterator[Prediction]:
    """Accuracy of all tries less that of one."""
    (claim,) = (claim for claim in paper.claims if not claim.missing)
    setup = claim.setup
    once, tries, ceiling = setup.number("success_frac"), setup.number("num_tries"), setup.number("ceiling_frac")
    answer = estimate(
        model="llama-3.1-8b",
        device="h100-sxm",
        batch=1,
        input_tokens=256,
        output_tokens=512,
        reasoning="best-of-n",
        samples=str(int(tries)),
        success=once,
        reasoning_knob=[f"stop_gain={setup.number('least_gain_frac'):g}", f"ceiling={ceiling:g}"],
    )
    assert isinstance(answer, Answer)
    stop = answer.to_json()["answer"]["studies"]["stop"]
    found = ceiling * float(coverage(once / ceiling, tries))
    yield Prediction(
        claim=claim.id,
        predicted=found - once,
        because=f"{percent(found, 1)} of questions alike have a right answer among {tries:g}; after "
        f"{stop['advised_tries']} tries another one adds less than a point",
        differs="questions that are not alike, some of which no try solves, and the vote that has to find a right "
        "answer among the others; both need recorded answers of the trained model",
    )
