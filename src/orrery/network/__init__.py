"""cost(collective, group): how long a group of devices takes to exchange bytes."""

from orrery.network.collective import Collective, coefficients
from orrery.network.exchange import TokenExchange
from orrery.network.rule import calibration, predict, spread
from orrery.network.timing import CollectiveTiming

__all__ = ["Collective", "CollectiveTiming", "TokenExchange", "calibration", "coefficients", "predict", "spread"]
