"""Many devices: how many, how they are grouped, and which link joins two of them."""

from dataclasses import dataclass

from orrery.hardware.device import Device, Link


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster:
    """``num_devices`` equal devices in nodes (fast domains) joined by the scale-out network."""

    device: Device
    num_devices: int
    devices_per_node: int

    @property
    def num_nodes(self) -> int:
        """Nodes needed, the last one possibly part full."""
        return -(-self.num_devices // self.devices_per_node)

    def link(self, group_devices: int) -> Link:
        """The slowest link that a group of that many neighbouring devices must cross."""
        return self.device.scaleup if group_devices <= self.devices_per_node else self.device.scaleout
