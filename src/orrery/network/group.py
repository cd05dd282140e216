"""Devices that take part in a collective, and how they are joined."""

from dataclasses import dataclass

from orrery.hardware.device import Device

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")
"""Collectives of plain buffers; ``moe_dispatch`` and ``moe_combine`` route tokens (see ``routed``)."""


LARGEST_CHASSIS_DEVICES = 16
"""No product holds more accelerators in one chassis (DGX-2, Trainium2 servers)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """``num_devices`` devices, ``per_node`` of them in each fast domain, joined inside by ``topology``.

    ``links`` is how many neighbours a device has on a mesh (its rate is shared among them), and
    ``has_reduction`` says that the switch adds.
    """

    kind: str
    num_devices: int
    per_node: int
    topology: str = "switch"
    links: int = 0
    has_reduction: bool = False
    has_peer_to_peer: bool = True  # devices reach each other's memory; False: through the host's

    @property
    def num_nodes(self) -> int:
        """Fast domains that the group touches."""
        return -(-self.num_devices // self.per_node)

    @property
    def num_dimensions(self) -> int:
        """Rings that cross in every device: 2 on a 2-D torus, 1 where there is no torus."""
        return int(self.topology[6]) if self.topology.startswith("torus-") else 1

    @property
    def crowding_ratio(self) -> float:
        """How many times the link's stated rate exceeds what this group can use of it.

        On a mesh only the links to members carry anything, ``(n - 1) / links`` of the whole; a switch gives all.
        """
        inside = min(self.num_devices, self.per_node)
        return max(self.links / (inside - 1), 1.0) if self.topology == "mesh" and inside > 1 and self.links else 1.0


def group_of(
    kind: str,
    num_devices: int,
    devices_per_node: int,
    device: Device,
    *,
    has_peer_to_peer: bool = False,
    stride: int = 1,
) -> Group:
    """The group that ``num_devices`` neighbours form on ``device``'s links.

    ``devices_per_node`` of 0 is the device's own. A link that joins more devices than a chassis holds (a rack of
    NVLink, a pod of a torus) runs between chassis: their borders do not count. ``has_peer_to_peer`` matters on a bus
    only. With a ``stride`` only every so-manyth device of a fast domain is a member.
    """
    link = device.scaleup
    per_node = devices_per_node or max(device.devices_per_node, 1)
    if link.num_devices > LARGEST_CHASSIS_DEVICES:
        per_node = max(per_node, link.num_devices)
    return Group(
        kind=kind,
        num_devices=num_devices,
        per_node=min(max(per_node // stride, 1), max(num_devices, 1)),
        topology=link.topology,
        links=max(link.num_devices - 1, 0),
        has_reduction=link.has_reduction,
        has_peer_to_peer=has_peer_to_peer or link.topology != "bus",
    )
