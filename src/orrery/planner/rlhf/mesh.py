"""Device meshes: contiguous slices of a cluster whose size is a power of two, aligned to that size. [mei-2024]

So two meshes either hold one another or share no device, and a mesh below a node never crosses its border.
"""

from dataclasses import dataclass

from orrery.hardware.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mesh:
    """``num_devices`` neighbours from device ``first`` on."""

    first: int
    num_devices: int

    @property
    def end(self) -> int:
        """The first device behind it."""
        return self.first + self.num_devices

    def overlaps(self, other: "Mesh") -> bool:
        """Whether a device is in both."""
        return self.first < other.end and other.first < self.end

    def __str__(self) -> str:
        return f"{self.first}-{self.end - 1}"


def mesh_sizes(cluster: Cluster) -> tuple[int, ...]:
    """Powers of two up to the cluster."""
    return tuple(1 << i for i in range(cluster.num_devices.bit_length()) if 1 << i <= cluster.num_devices)


def meshes(cluster: Cluster, num_devices: int) -> tuple[Mesh, ...]:
    """Every mesh of that size."""
    ends = range(0, cluster.num_devices - num_devices + 1, num_devices)
    return tuple(Mesh(first=first, num_devices=num_devices) for first in ends)
