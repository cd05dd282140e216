"""What a part of a step adds to each channel: seconds, joules above idle, and what bounds the seconds."""

from collections.abc import Iterable

import numpy as np

from orrery.execution.batch import Part
from orrery.execution.layout import Deployment
from orrery.execution.surface._kernel import CHANNELS, ENERGY, MEMORY, NETWORK, TIME, Floats
from orrery.kernels import energy


def channels(deployment: Deployment, parts: Iterable[Part], size: int) -> Floats:
    """The parts' channels, summed: (entries of the batch, channel). What is no kernel draws nothing above idle."""
    out = np.zeros((size, CHANNELS))
    for p in parts:
        out[:, TIME] += p.time_s
        if p.group == "network":
            out[:, NETWORK] += p.time_s
        if p.once is not None:
            out[:, ENERGY] += energy_above_idle_j(deployment, p)
            out[:, MEMORY] += np.where(p.once.memory_s > p.once.compute_s, p.time_s, 0.0)
    return out


def energy_above_idle_j(deployment: Deployment, p: Part) -> Floats:
    """Energy of a kernel's repetitions, less what the device draws idle in that time."""
    time_s, device = np.asarray(p.time_s, np.float64), deployment.cluster.device
    if p.once is None:
        return np.zeros_like(time_s)
    flops, moved = (p.count * np.asarray(x, np.float64) for x in (p.once.flops, p.once.bytes))
    return np.maximum(energy.energy_j(device, p.format, time_s, flops, moved) - device.idle_power_w * time_s, 0.0)
