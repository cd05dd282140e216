"""Errors of training predictions against measured runs."""

from orrery.base.cost import Spread
from orrery.execution.train.job import TrainingJob

SMALL_PARAMETERS = 1e9
"""Below this many parameters steps wait for the host, for launches and for what a model of any size costs."""


def spread_of(job: TrainingJob, metric: str) -> Spread | None:
    """The relative error of such predictions, as measured; None where nothing was."""
    known = job.framework.spreads
    found = known.get(f"{kind_of(job)}.{metric}") or known.get(f"pretrain.{metric}")
    if not found:
        return None
    return Spread(
        low_80_ratio=found["low_80"],
        high_80_ratio=found["high_80"],
        low_95_ratio=found["low_95"],
        high_95_ratio=found["high_95"],
        because="errors of measured runs that were not used to fit",
    )


def kind_of(job: TrainingJob) -> str:
    """The kind of work whose errors are alike: pre-training, that of small models, or fine-tuning."""
    if job.task not in ("pretrain", "forward_backward"):
        return "finetune"
    return "small" if job.model.num_parameters < SMALL_PARAMETERS else "pretrain"
