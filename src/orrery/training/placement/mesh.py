"""A mesh of equal devices, and how long its groups take to exchange bytes.

The innermost axis joins neighbours: along axis i a group's members stand ``prod(shape[i + 1:])`` devices apart, so
that an axis whose members stand a whole node apart crosses the network with every step.
"""

import math
from dataclasses import dataclass

from orrery import network
from orrery.hardware.device import Device
from orrery.network import Collective


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mesh:
    """``shape`` counts the devices along each axis; ``devices_per_node`` of 0 is the device's own."""

    device: Device
    shape: tuple[int, ...]
    devices_per_node: int = 0

    @property
    def num_devices(self) -> int:
        """Devices in all."""
        return math.prod(self.shape)

    def exchange_s(self, kind: str, axis: int, message_bytes: float) -> float:
        """How long the groups along ``axis`` take, all at once; ``message_bytes`` as ``network.Collective`` counts."""
        return float(network.predict(self.collective(kind, axis, message_bytes), self.device).time_s)

    def collective(self, kind: str, axis: int, message_bytes: float) -> Collective:
        """The exchange of one group along ``axis``."""
        per_node = self.devices_per_node or max(self.device.devices_per_node, 1)
        stride = math.prod(self.shape[axis + 1 :])
        return Collective(
            kind=kind,
            num_devices=self.shape[axis],
            message_bytes=message_bytes,
            devices_per_node=max(per_node // stride, 1),
        )
