"""Errors of training predictions against measured runs."""

from orrery.base.cost import Spread
from orrery.execution.train.job import TrainingJob


def spread_of(job: TrainingJob, metric: str) -> Spread | None:
    """The relative error of such predictions, as measured; None where nothing was."""
    kind = "pretrain" if job.task in ("pretrain", "forward_backward") else "finetune"
    found = job.framework.spreads.get(f"{kind}.{metric}") or job.framework.spreads.get(f"pretrain.{metric}")
    if not found:
        return None
    return Spread(
        low_80_ratio=found["low_80"],
        high_80_ratio=found["high_80"],
        low_95_ratio=found["low_95"],
        high_95_ratio=found["high_95"],
        because="errors of measured runs that were not used to fit",
    )
