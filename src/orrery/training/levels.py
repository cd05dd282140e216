"""Nested groups of devices, each joined by its own link: dies of a package, a node, a system.

A group of level l has ``num_devices`` devices, which are whole groups of the level inside it. Devices are numbered
innermost first, so the group of a level are neighbours.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from orrery.base.errors import ScenarioError
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device, Link

DEVICE = "device"
"""The level below all: every device holds the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One kind of group."""

    name: str
    num_devices: int  # of one group
    link: Link  # that joins the groups inside it, per device and direction
    is_network: bool = False  # between nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Levels from the innermost to the whole machine."""

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        inner = Level(name=DEVICE, num_devices=1, link=Link(name="", each_way_bytes_per_s=0.0, latency_s=0.0))
        for level in self.levels:
            if level.num_devices <= inner.num_devices or level.num_devices % inner.num_devices:
                raise ScenarioError(
                    f"levels: {level.name} has {level.num_devices} devices, which are no whole number (2 or more) of "
                    f"{inner.name}s of {inner.num_devices}; write {inner.num_devices * 2} or another multiple."
                )
            if inner.is_network and not level.is_network:
                raise ScenarioError(f"levels: {level.name} lies outside {inner.name} but inside a node; swap them.")
            inner = level

    @property
    def num_devices(self) -> int:
        """Number of devices of the whole machine."""
        return self.levels[-1].num_devices

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all levels, the single device first."""
        return (DEVICE, *(x.name for x in self.levels))

    def size(self, name: str) -> int:
        """Devices of a group of the level called ``name``."""
        if name == DEVICE:
            return 1
        for level in self.levels:
            if level.name == name:
                return level.num_devices
        raise ScenarioError(f"level: there is no {name!r}; write {' or '.join(map(repr, self.names))}.")

    def level_of(self, span_devices: int) -> int:
        """The innermost level whose group spans so many neighbours."""
        fits = [i for i, level in enumerate(self.levels) if level.num_devices >= span_devices]
        if not fits:
            raise ScenarioError(f"levels: no group has {span_devices} devices; the machine has {self.num_devices}.")
        return fits[0]


def of_cluster(cluster: Cluster) -> Topology:
    """The two levels that every cluster has: the node, and all nodes."""
    device, inside = cluster.device, min(cluster.devices_per_node, cluster.num_devices)
    node = Level(name="node", num_devices=inside, link=device.scaleup)
    system = Level(name="system", num_devices=cluster.num_devices, link=device.scaleout, is_network=True)
    levels = [node] if inside > 1 else []
    return Topology(levels=(*levels, *([system] if cluster.num_devices > inside else [])))


@lru_cache(maxsize=1024)
def view(topology: Topology, device: Device, level: int) -> tuple[Device, int]:
    """The device as a group of that level sees it, and how many neighbours the link inside joins.

    Inside a node the level's link joins all members. Between nodes it joins them from node to node, and the link of
    the outermost level inside a node joins those that share one.
    """
    at = topology.levels[level]
    if not at.is_network:
        return replace(device, scaleup=at.link, devices_per_node=at.num_devices), at.num_devices
    inside = [x for x in topology.levels if not x.is_network]
    near = inside[-1].link if inside else device.scaleup
    per_node = inside[-1].num_devices if inside else 1
    return replace(device, scaleup=near, scaleout=at.link, devices_per_node=per_node), per_node
