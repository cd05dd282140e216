"""Parameters move from the cut in which they were trained to the one of another call. [mei-2024]

A device holds its stage's layers and its share of each. What a device of the destination lacks comes from the devices
that hold it: over the node's own link where one of them is near, else over the network. Every holder sends each byte
once (broadcasts are pipelined through the receivers), and its data-parallel copies share that out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.cluster import Cluster
from orrery.planner.rlhf.mesh import Mesh

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cut on a mesh: ranks are numbered tensor first, then data, then pipeline, from the mesh's first device on."""

    mesh: Mesh
    tp: int
    pp: int
    dp: int

    def ranks(self) -> tuple[Ints, Ints, Ints]:
        """(stage, tensor rank, device) of every rank."""
        rank = np.arange(self.tp * self.pp * self.dp)
        return rank // (self.tp * self.dp), rank % self.tp, self.mesh.first + rank


def reallocation_s(cluster: Cluster, model_bytes: float, source: Place, target: Place) -> float:
    """Seconds until every device of ``target`` holds its part; 0 where nothing moves."""
    if source == target:
        return 0.0
    device, node = cluster.device, cluster.devices_per_node
    missing, near = _missing(source, target, node)
    inside_s = 1.0 / device.scaleup.each_way_bytes_per_s
    outside_s = 1.0 / device.scaleout.each_way_bytes_per_s
    received_s = model_bytes * (missing * np.where(near, inside_s, outside_s)).sum(axis=1)
    piece = 1.0 / (source.pp * source.tp)
    far_s, near_s = (
        np.minimum((missing * kind).sum(axis=0), piece) * each for kind, each in ((~near, outside_s), (near, inside_s))
    )
    sent_s = model_bytes * np.maximum(far_s, near_s) / source.dp
    busiest_s = float(max(received_s.max(), sent_s.max()))
    latency_s = device.scaleout.latency_s if (missing * ~near).any() else device.scaleup.latency_s
    return busiest_s + (latency_s if busiest_s > 0.0 else 0.0)


def _missing(source: Place, target: Place, node: int) -> tuple[Floats, NDArray[np.bool_]]:
    """(target ranks, source pieces): the share of the model that each rank lacks of each piece, and who has it near."""
    stage, tensor, device = target.ranks()
    from_stage, from_tensor, from_device = source.ranks()
    piece = from_stage * source.tp + from_tensor
    pieces = np.arange(source.pp * source.tp)
    layers = _shared(stage, target.pp, pieces // source.tp, source.pp)
    width = _shared(tensor, target.tp, pieces % source.tp, source.tp)
    share = layers * width
    inside = (device >= source.mesh.first) & (device < source.mesh.first + from_device.size)
    rows = np.flatnonzero(inside)
    share[rows, piece[device[rows] - source.mesh.first]] = 0.0
    nodes = np.zeros((int(max(from_device.max(), device.max())) // node + 1, pieces.size), dtype=np.bool_)
    nodes[from_device // node, piece] = True
    return share, nodes[device // node]


def _shared(index: Ints, ways: int, other: Ints, other_ways: int) -> Floats:
    """The common length of [i / n, (i + 1) / n] and [j / m, (j + 1) / m], for all pairs."""
    low = np.maximum(index[:, None] / ways, other[None, :] / other_ways)
    high = np.minimum((index[:, None] + 1) / ways, (other[None, :] + 1) / other_ways)
    return np.maximum(high - low, 0.0)
