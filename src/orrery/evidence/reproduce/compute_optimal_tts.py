"""Compute-optimal test-time scaling: what the same operations pay for, and tries dealt out by difficulty."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.reproduce.prediction import Prediction
from orrery.reasoning.allocate import allocate, saving_ratio
from orrery.reasoning.coverage import Difficulty
from orrery.reasoning.matched import matched_samples, matched_size_ratio

DIFFERS = (
    "search and revisions, whose gains need trained verifiers and revisers; only the number of tries is chosen here"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The size that a budget of tries pays for; then the saving."""
    matched, math = paper.setups["matched"], paper.setups["math"]
    tries, ratio = matched.number("num_tries"), matched.number("answered_ratio")
    size = matched_size_ratio(tries, ratio)
    more = matched_samples(2 * size, ratio)
    words = f"{tries:g} tries, {ratio:g} tokens answered for one of training; twice that size would pay for {more:.4g}"
    yield Prediction(claim="model-size", predicted=size, because=words)
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
