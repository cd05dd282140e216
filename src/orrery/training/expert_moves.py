"""Step cost of copied or moved experts beside their loads: gradients that copies sum, state that travels.

Copies on several ranks sum their gradients once a step, after all micro-batches, each rank its own share of what
further copies of the ranks hold. At every new placement the weights and optimizer states of an expert go where it now
stands, an all-to-all of the ranks that experts are dealt over; a step bears its share of the interval.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.placement import by_ranks, is_in_order
from orrery.models.model import Experts
from orrery.training.columns import Columns

Floats = NDArray[np.float64]


def routed_experts(job: TrainingJob) -> Experts | None:
    """Experts of the first layer that has some, where a technique moves or copies them; None where none does."""
    if is_in_order(job):
        return None
    return next((b.experts for b in job.model.blocks if b.experts), None)


def copied_parameters(job: TrainingJob, x: Columns, expert_parameters: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """A device's expert parameters that other ranks hold too, and the number of ranks with the most copied expert."""
    experts = routed_experts(job)
    if experts is None:
        return np.zeros(len(x)), np.ones(len(x), dtype=np.int64)
    copies = by_ranks(job, experts, x.ep, "num_copies").astype(np.int64)
    return by_ranks(job, experts, x.ep, "copied_frac") * expert_parameters, copies


def moved_parameters(job: TrainingJob, x: Columns, expert_parameters: Floats) -> Floats:
    """A device's expert parameters that came from another rank at a new placement."""
    experts = routed_experts(job)
    return np.zeros(len(x)) if experts is None else by_ranks(job, experts, x.ep, "moved_frac") * expert_parameters
