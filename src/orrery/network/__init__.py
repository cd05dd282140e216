"""cost(collective, group): how long a group of devices takes to exchange bytes."""

from orrery.network.collective import Collective, CollectiveTiming, calibration, predict, spread

__all__ = ["Collective", "CollectiveTiming", "calibration", "predict", "spread"]
