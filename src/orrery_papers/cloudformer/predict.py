"""CloudFormer: dual-branch attention on runs of programs never seen, beside recurrence and a straight line."""

from collections.abc import Iterator

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.predictors.studies.noisy_neighbours import EXPERIMENT

ATTENTION, RECURRENCE, LINE = "dual-branch-attention", "gated-recurrence", "counter-line"

DIFFERS = (
    "generated metrics name what the slowdown is made of, so that simple predictors are good already, and networks "
    "train for seconds"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The error on unseen kinds, its margins, and how many metrics there are."""
    rows = EXPERIMENT(steps=int(paper.setups["unseen-kinds"].number("num_steps")))
    error = {str(row["predictor"]): float(row["error_frac"]) for row in rows if "predictor" in row}
    text = ", ".join(f"{name} {percent(value, 1)}" for name, value in error.items())
    yield Prediction(claim="error", predicted=error[ATTENTION], because=f"mean absolute errors: {text}")
    best = min(error[RECURRENCE], error[LINE])
    yield Prediction(claim="margin", predicted=1.0 - error[ATTENTION] / best, because=text, differs=DIFFERS)
    yield Prediction(claim="margin-line", predicted=1.0 - error[ATTENTION] / error[LINE], because=text, differs=DIFFERS)
    yield Prediction(
        claim="metrics",
        predicted=float(rows[0]["num_metrics"]),
        because="eleven of each of five tenants, twelve of the host, two of each of eight channels",
        differs="what the mechanism moves, and a few that it does not; more copies of them would teach nothing",
    )
