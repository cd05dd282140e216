"""Room for experts that come to every rank for a layer's passes: their weights, and their gradients on the way back.

One layer's stand there at a time. How many come is what takes least, forward and backward each for itself.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import knob_array
from orrery.base.technique import GATHERS_EXPERTS
from orrery.execution.train.hidden import EXPERT, expert_exposed
from orrery.execution.train.units import Units
from orrery.training.pace import network_ratio
from orrery.training.sync import gradient_bytes

Floats = NDArray[np.float64]


def gathered_expert_bytes(units: Units) -> Floats:
    """Bytes on a device, for every layout of the units."""
    job, choice = units.job, units.choice
    experts = next((b.experts for b in job.model.blocks if b.experts), None)
    if experts is None or not job.expert_overlap or GATHERS_EXPERTS not in EXPERT.get(job.expert_overlap).traits:
        return np.zeros(choice.ep.shape)
    forward, backward = _numbers(units)
    weights, gradients = job.gathered_weight_bytes, gradient_bytes(job)
    widest = np.maximum(forward * weights, backward * (weights + gradients))
    return widest * experts.num_parameters_each / np.maximum(choice.etp, 1)


@lru_cache(maxsize=16)  # every stage of a pipeline asks for the same layers
def _numbers(units: Units) -> tuple[Floats, Floats]:
    """Experts of a layer that come, forward and backward: the last that shortened the pass."""
    job, choice = units.job, units.choice
    technique = EXPERT.get(job.expert_overlap)
    most = int(knob_array(technique, **dict(job.expert_knobs))[0])
    ratio = network_ratio(units, choice.ep * choice.etp)
    numbers = np.zeros((2, *choice.ep.shape))
    before = np.array(expert_exposed(units, ratio, 0))
    for number in range(1, most + 1):
        after = np.array(expert_exposed(units, ratio, number))
        numbers[after < before] = number
        before = after
    return numbers[0], numbers[1]
