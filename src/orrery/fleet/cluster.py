"""A cluster of one's own: how many machines and switches some devices take, what they cost, and what they draw."""

from dataclasses import dataclass
from math import ceil

from orrery.fleet.fabric import num_switches
from orrery.fleet.ownership import Owned, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Equal fat trees that the machines' ports are dealt to, and switches between them."""

    node_ports: int
    num_networks: int
    num_endpoints: int  # that each is built for; 0: as many as are taken
    switch_ports: int
    num_layers: int
    num_joining: int
    switch_usd: float
    switch_w: float

    def switches(self, num_nodes: int) -> int:
        """Switches of all networks."""
        if not self.node_ports:
            return 0
        taken = ceil(num_nodes * self.node_ports / self.num_networks)
        each = num_switches(self.num_endpoints or taken, self.switch_ports, self.num_layers)
        return self.num_networks * each + self.num_joining


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Devices in machines on a network, with the prices and watts of each."""

    name: str
    num_devices: int
    devices_per_node: int
    device_usd: float
    host_usd: float  # of one machine without its devices
    device_w: float
    host_w: float
    network: Network

    @property
    def num_nodes(self) -> int:
        """Machines that hold the devices; the last one may have free places."""
        return ceil(self.num_devices / self.devices_per_node)

    @property
    def num_switches(self) -> int:
        """Switches of its network."""
        return self.network.switches(self.num_nodes)

    @property
    def parts_usd(self) -> dict[str, float]:
        """Capital by part; machines are bought with all their places filled."""
        places = self.num_nodes * self.devices_per_node
        return {
            "devices": places * self.device_usd,
            "hosts": self.num_nodes * self.host_usd,
            "switches": self.num_switches * self.network.switch_usd,
        }

    @property
    def capital_usd(self) -> float:
        """All that is bought."""
        return sum(self.parts_usd.values())

    @property
    def node_w(self) -> float:
        """Draw of one machine at its rated watts."""
        return self.devices_per_node * self.device_w + self.host_w

    @property
    def power_w(self) -> float:
        """Draw of machines and switches, at their rated watts."""
        return self.num_nodes * self.node_w + self.num_switches * self.network.switch_w

    def usd_per_s(self, terms: Terms) -> float:
        """Price, upkeep and electricity at the rated draw."""
        return Owned(name=self.name, price_usd=self.capital_usd, power_w=self.power_w).usd_per_s(terms)
