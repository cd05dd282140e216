"""Compute-optimal test-time scaling: tries dealt out by difficulty."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.reasoning.allocate import allocate, saving_ratio
from orrery.reasoning.coverage import Difficulty

DIFFERS = (
    "search and revisions, whose gains need trained verifiers and revisers; only the number of tries is chosen here"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The saving."""
    math = paper.setups["math"]
    questions = Difficulty(
        mean_frac=math.number("one_try_frac"), evenness_ratio=math.number("difficulty_evenness_ratio")
    )
    bins = [float(p) for p in questions.bins(int(math.number("num_difficulty_bins")))]
    each = int(math.number("num_tries"))
    saving = saving_ratio(bins, each)
    dealt = ", ".join(str(n) for n in allocate(bins, round(each * len(bins) / saving)))
    chances = ", ".join(f"{p:.2g}" for p in bins)
    words = f"chances {chances}: {each} tries for all solve as many as {dealt}"
    yield Prediction(claim="efficiency", predicted=saving, because=words, differs=DIFFERS)
