"""Choosing an acceleration: regret of trees that learned from simulated runs, against chance and one for all."""

from collections.abc import Iterator

import numpy as np

from orrery.base.experiment import Row
from orrery.base.units import percent
from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.predictors.acceleration.stored import stored_history
from orrery.predictors.studies.which_acceleration import choosers


def predict(paper: Paper) -> Iterator[Prediction]:
    """Ratios of mean regrets, and how often the best one is chosen."""
    shipped = stored_history()
    history = shipped.rows(np.arange(min(len(shipped.tasks), int(paper.setups["history"].number("num_tasks")))))
    rows = {(str(row["unseen"]), str(row["chooser"])): row for row in choosers(history)}
    for claim, unseen, rival in (
        ("regret-of-chance", "tasks", "chance"),
        ("regret-of-one-for-all", "tasks", "one for all"),
        ("regret-on-unseen-devices", "devices", "one for all"),
    ):
        own, other = rows[unseen, "selector"], rows[unseen, rival]
        yield Prediction(
            claim=claim,
            predicted=float(other["regret_mean_frac"]) / float(own["regret_mean_frac"]),
            because=f"{_describe(own)}; {rival}: {_describe(other)}",
        )
    own = rows["tasks", "selector"]
    yield Prediction(
        claim="accuracy-of-a-forest",
        predicted=float(own["is_best_frac"]),
        because=_describe(own),
        differs="other tasks, other accelerations, and simulated runs in place of measured ones",
    )


def _describe(row: Row) -> str:
    return (
        f"{percent(float(row['regret_mean_frac']))} longer than the best on average, "
        f"{percent(float(row['regret_p90_frac']))} at the 90th percentile"
    )
