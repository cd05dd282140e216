"""Power as a poller sees it over a process's life: work, and the waiting around it.

    polled = (busy watts x busy seconds + awake watts x other seconds) / both

A process that fills arrays and copies them leaves the device awake and idle meanwhile, so a quicker kernel is seen to
draw less, whatever it draws while it runs.
"""

import numpy as np

from orrery.hardware.device import Device
from orrery.kernels.energy.rule import Floats, Rate, power_w


def polled_w(device: Device, format: str, busy_w: Rate, busy_s: Rate, other_s: Rate) -> Floats:
    """Mean power over ``busy_s`` of work at ``busy_w`` and ``other_s`` awake without any."""
    awake_w = power_w(device, format, 0.0, 0.0)
    share = np.divide(busy_s, np.add(busy_s, other_s))
    return np.asarray(share * np.subtract(busy_w, awake_w) + awake_w, dtype=np.float64)
