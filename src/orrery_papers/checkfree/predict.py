"""CheckFree: lost pipeline stages made from their neighbours, rolled back, or computed twice.

How many more steps losses cost is measured on a small model that is trained while it loses stages at the paper's rate.
"""

from collections.abc import Iterator
from functools import cache

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.recovery.measured import steps_with_losses
from orrery.training.recovery.network import Shape
from orrery.training.recovery.strategies import Outcome, StageFaults, computed_twice, from_neighbours, rolled_back

MEASURED_STEPS, SEEDS = 500, (0, 1, 2)  # see [unstated] measured_on
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
        return computed_twice(faults(s), 1, s.number("step_s")).step_s / s.number("step_s")
    if claim.metric == "rollback_train_time":
        return rollback(s).time_s
    if claim.metric == "train_time_reduction":
        twice = computed_twice(
            faults(s),
            int(s.number("num_steps")),
            s.number("step_s"),
            step_ratio=s.number("doubled_step_s") / s.number("step_s"),
        )
        return 1.0 - averaged(s, swaps_ends=True).time_s / twice.time_s
    return averaged(s, swaps_ends=claim.metric == "swapped_train_time").time_s


def faults(s: Setup) -> StageFaults:
    """The stages, and how often each is lost."""
    return StageFaults(
        num_stages=int(s.number("num_stages")),
        hourly_failure_frac=s.number("hourly_failure_frac"),
        replace_s=s.number("replace_s"),
    )


def rollback(s: Setup) -> Outcome:
    """Saves every so many steps, back to the last one after a loss."""
    return rolled_back(
        faults(s), int(s.number("num_steps")), s.number("step_s"), int(s.number("num_steps_between_saves"))
    )


def averaged(s: Setup, *, swaps_ends: bool) -> Outcome:
    """As many times the steps without losses as the small model needs at the same rate of losses."""
    stages, step_s = faults(s), s.number("step_s")
    ratio = measured_ratio(stages.num_stages, stages.step_failure_frac(step_s), swaps_ends)
    return from_neighbours(stages, int(s.number("num_steps")), step_s, 0.0, steps_ratio=ratio)


def measured_ratio(num_stages: int, step_failure_frac: float, swaps_ends: bool) -> float:
    """Steps with losses over steps without, to the same loss, over all seeds."""
    return measured_steps(num_stages, step_failure_frac, swaps_ends) / measured_steps(num_stages, 0.0, False)


@cache
def measured_steps(num_stages: int, step_failure_frac: float, swaps_ends: bool) -> float:
    """Steps to the loss of a run that loses no stage, summed over all seeds."""
    shape = Shape(num_stages=num_stages)
    return sum(
        steps_with_losses(shape, MEASURED_STEPS, step_failure_frac, swaps_ends=swaps_ends, seed=seed) for seed in SEEDS
    )
