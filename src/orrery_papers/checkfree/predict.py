"""CheckFree: lost pipeline stages made from their neighbours, rolled back, or computed twice.

How many more steps losses cost is measured on a small model that is trained while it loses stages at the paper's rate.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

MEASURED_STEPS, SEEDS = 500, 3  # see [unstated] measured_on
FORWARD_TWICE_RATIO = 4.0 / 3.0
"""A second forward pass beside one forward and two backward: [unstated] doubled_step."""

SMALL_MODEL = (
    "steps are measured on a small model and a short run: later in a long run the loss falls more slowly, and what a "
    "stage had learnt takes longer to come back; few losses fall into so short a run, so the measure is rough"
)

BECAUSE = {
    "train_time_reduction": "CheckFree+ against redundant computation at its measured step time",
    "step_time_ratio": "a second forward pass beside one forward and two backward",
    "rollback_train_time": "steps until every hundred have gone well in a row, at the rate of losses",
    "train_time": "steps of the measured run with losses, ends copied from their neighbour",
    "swapped_train_time": "the same with the outer stages swapped for half the batch",
}
DIFFERS = {
    "rollback_train_time": "the paper's failures come from one drawn list, and its times hardly grow with their rate; "
    "losses that are independent in every step cost less at the lowest rate and far more at the highest",
    "step_time_ratio": "the redundant step also has half the micro-batch and twice as many of them over slow links",
    "train_time": SMALL_MODEL,
    "swapped_train_time": SMALL_MODEL,
    "train_time_reduction": SMALL_MODEL,
}
WAYS = {
    "rollback_train_time": "rollback",
    "train_time": "neighbour-average",
    "swapped_train_time": "neighbour-average-swapped",
}
"""Ways of the experiment, by the metric that is their run's time."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Table 2 and the headline; rates and sizes of models are inputs."""
    for claim in paper.claims:
        if claim.metric in BECAUSE:
            yield Prediction(
                claim=claim.id, predicted=answer(claim), because=BECAUSE[claim.metric], differs=DIFFERS[claim.metric]
            )


def answer(claim: Claim) -> float:
    """The claim's metric."""
    s = claim.setup
    if claim.metric == "step_time_ratio":
        return rows(s, FORWARD_TWICE_RATIO, 1)["redundant"]["step_s"] / s.number("step_s")
    steps = 1 if claim.metric == "rollback_train_time" else MEASURED_STEPS  # nothing is trained for what is counted
    found = rows(s, s.number("doubled_step_s") / s.number("step_s"), steps)
    if claim.metric == "train_time_reduction":
        return 1.0 - found[WAYS["swapped_train_time"]]["run_s"] / found["redundant"]["run_s"]
    return found[WAYS[claim.metric]]["run_s"]


def rows(s: Setup, twice_ratio: float, steps: int) -> Mapping[str, Mapping[str, float]]:
    """``orrery experiment stage-losses`` on the set-up's stages, rate and run, by way."""
    sizes = {
        "stages": f"{s.number('num_stages'):.0f}",
        "hourly_failure": f"{s.number('hourly_failure_frac'):g}",
        "step_s": f"{s.number('step_s'):g}",
        "whole_steps": f"{s.number('num_steps'):.0f}",
        "replace_s": f"{s.number('replace_s'):g}",
        "save_steps": f"{s.number('num_steps_between_saves'):.0f}",
    }
    return _rows(tuple(f"{name}={value}" for name, value in sizes.items()), twice_ratio, steps)


@cache
def _rows(sizes: tuple[str, ...], twice_ratio: float, steps: int) -> Mapping[str, Mapping[str, float]]:
    found = run_experiment("stage-losses", steps=steps, seeds=SEEDS, sizes=[*sizes, f"twice_ratio={twice_ratio!r}"])
    return {str(row["way"]): {k: float(v) for k, v in row.items() if k != "way"} for row in found.rows}
