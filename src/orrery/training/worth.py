"""Yield of steps: utilisation, power and energy, tokens, days."""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.kernels import energy
from orrery.numerics.registry import get_format
from orrery.training.columns import Columns
from orrery.training.step import Steps

Floats = NDArray[np.float64]


def peak_flops_per_s(job: TrainingJob) -> float:
    """The dense peak that utilisation is counted against: of the format that the recipe multiplies in."""
    device = job.cluster.device
    try:
        return device.peak_flops_per_s(get_format(job.recipe.forward_format).rates)[1]
    except OutOfRange:
        return device.vector_flops_per_s


def mfu_frac(steps: Steps) -> Floats:
    """The model's operations (causal attention, no recomputation) over what the devices could do in the time."""
    x = steps.columns
    devices = x.tp * x.cp * x.pp * x.dp
    return steps.model_flops / (steps.time_s * devices * peak_flops_per_s(steps.job))


def power_w(steps: Steps) -> Floats:
    """Mean power of one device over a step, from its operations and bytes; devices that wait idle."""
    return work_power_w(steps.job, steps.hardware_flops, steps.wide_frac, steps.moved_bytes, steps.time_s)


def work_power_w(job: TrainingJob, flops: Floats, wide_frac: Floats, moved_bytes: Floats, time_s: Floats) -> Floats:
    """Mean power of a device that makes so many operations in ``time_s``, each against the peak of its own format."""
    device, recipe = job.cluster.device, job.recipe
    narrow = energy.weighted_s(device, recipe.forward_format, (1.0 - wide_frac) * flops, moved_bytes)
    wide = energy.weighted_s(device, recipe.wide_format, wide_frac * flops, np.zeros_like(moved_bytes))
    return energy.step_law(device).powers_w(narrow[0] + wide[0], narrow[1], time_s)


def energy_bound_j(job: TrainingJob, x: Columns, time_s: Floats) -> Floats:
    """No more than a step of at least ``time_s`` takes over all devices: the model's operations and no bytes.

    Power rises slower than work and never falls with it, so energy rises with time and with work: a true lower bound.
    """
    devices = x.tp * x.cp * x.pp * x.dp
    least, none = least_flops(job) / devices, np.zeros_like(time_s)
    return work_power_w(job, least, none, none, time_s) * time_s * devices


def least_flops(job: TrainingJob) -> float:
    """Least operations of one step, all devices: products with every active parameter but embeddings, no attention."""
    backward = 1.0 if job.task in FROZEN else 2.0
    active = sum(b.count * sum(p.num_parameters for p in b.linears) for b in job.model.blocks)
    return 2.0 * (1.0 + backward) * active * job.tokens_per_step


def energy_j(steps: Steps) -> Floats:
    """Energy (J) of one step over all devices."""
    x = steps.columns
    return power_w(steps) * steps.time_s * (x.tp * x.cp * x.pp * x.dp)
