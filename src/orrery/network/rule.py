"""The two questions of this floor, for buffers and for tokens alike."""

import numpy as np

from orrery.base.cost import Spread
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.network.collective import Collective, collective_calibration, predict_collective
from orrery.network.exchange import TokenExchange, exchange_calibration, predict_exchange
from orrery.network.group import group_of
from orrery.network.timing import CollectiveTiming


def predict(work: Collective | TokenExchange, device: Device) -> CollectiveTiming:
    """How long the exchange takes among ``work.num_devices`` neighbours like ``device``."""
    return predict_collective(work, device) if isinstance(work, Collective) else predict_exchange(work, device)


def calibration(work: Collective | TokenExchange, device: Device) -> Calibration:
    """The constants that ``predict`` uses, and where they come from."""
    return collective_calibration(work, device) if isinstance(work, Collective) else exchange_calibration(work, device)


ACROSS_NODES, MORE_DEVICES = 2.0, 1.5
"""How much wider an interval becomes (log space) between nodes, and with more devices than were ever measured."""


def spread(work: Collective | TokenExchange, device: Device) -> Spread:
    """The relative error of ``predict``, as measured for the constants that it uses.

    Wider between nodes (that network is an installation's, and a datasheet says little of it) and wherever more
    devices take part than were measured.
    """
    found, count = calibration(work, device), int(np.max(work.num_devices))
    if count > 1 and group_of(work.kind, count, work.devices_per_node, device).num_nodes > 1:
        return found.spread.widened(ACROSS_NODES, "measured inside a node; between nodes the installation decides")
    most = found.range.get("num_devices", (0.0, float(count)))[1]
    if count > most:
        return found.spread.widened(MORE_DEVICES, f"measured with up to {most:.0f} devices")
    return found.spread
