"""Compute-optimal test-time scaling: samples, a search or revisions dealt out by difficulty."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer, estimate

DIFFERS = (
    "trained verifiers and revisers: here a verifier of assumed accuracy, a law of steps for the search, and revisions "
    "that spoil a tenth of the right answers"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The saving."""
    math = paper.setups["math"]
    each = int(math.number("num_tries"))
    found = estimate(
        model="llama-3.1-8b",
        device="h100-sxm",
        batch=1,
        input_tokens=256,
        output_tokens=512,
        reasoning="best-of-n",
        samples=str(each),
        success=math.number("one_try_frac"),
        evenness=math.number("difficulty_evenness_ratio"),
        verifier_accuracy=math.number("check_right_frac"),
        reasoning_knob=["allocate=by-difficulty", f"num_bins={math.number('num_difficulty_bins'):.0f}"],
    )
    assert isinstance(found, Answer)
    study = found.to_json()["answer"]["studies"]["allocation"]
    dealt = ", ".join(f"{row['num_answers']} of {row['way']}" for row in study["rows"])
    chances = ", ".join(f"{row['success_frac']:.2g}" for row in study["rows"])
    yield Prediction(
        claim="efficiency",
        predicted=study["saving_over_samples_ratio"],
        because=f"chances {chances}: {each} tries for all are as often right as that many times fewer; with {each} "
        f"each on average {dealt}",
        differs=DIFFERS,
    )
