"""Power that a device draws while it works, and the energy of a piece of work."""

from orrery.kernels.energy.polled import polled_w
from orrery.kernels.energy.rule import calibration, demand_w, energy_j, power_spread, power_w
from orrery.kernels.energy.steps import StepLaw, step_law, step_spread, weighted_s

__all__ = [
    "StepLaw",
    "calibration",
    "demand_w",
    "energy_j",
    "polled_w",
    "power_spread",
    "power_w",
    "step_law",
    "step_spread",
    "weighted_s",
]
