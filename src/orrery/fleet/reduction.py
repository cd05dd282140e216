"""Sums over many machines that have one network card each and no fast links inside: through the host, or as one ring.

Bandwidth is the size of the buffer over the time of the whole sum. Chunks follow each other, so the slowest stage sets
the pace; steps that must follow each other add their latency once.
"""

import math
from dataclasses import dataclass

from orrery.network.traffic import double_tree_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedNode:
    """A machine whose devices hang on the host's bus and share its network card. Rates are one way unless said."""

    num_devices: int
    bus_bytes_per_s: float  # of one device
    num_devices_per_port: int  # that share a port of the root complex
    port_bytes_per_s: float  # of such a port, both directions together
    host_memory_bytes_per_s: float  # reading and writing together
    card_bytes_per_s: float
    peer_bytes_per_s: float  # from a device straight to the card, past the host's memory
    step_s: float  # latency of one message between machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """One sum over all devices: how long, at which pace, and what sets it."""

    time_s: float
    pace_bytes_per_s: float
    bound_by: str

    def bandwidth_bytes_per_s(self, buffer_bytes: float) -> float:
        """Bytes of the buffer for each second of the whole."""
        return buffer_bytes / self.time_s


def host_reduce(node: HostedNode, num_nodes: int, buffer_bytes: float) -> Reduced:
    """Devices copy to the host, which adds, exchanges one sum with other hosts by two trees, and copies back.

    Every byte crosses a device's bus once each way, the card as often as two trees ask, and the host's memory
    ``memory_passes`` times.
    """
    trees = double_tree_ratio(num_nodes)
    paces = {
        "bus": node.bus_bytes_per_s,
        "root port": node.port_bytes_per_s / (2.0 * node.num_devices_per_port),
        "host memory": node.host_memory_bytes_per_s / memory_passes(node.num_devices, num_nodes),
        "network card": node.card_bytes_per_s / trees if num_nodes > 1 else math.inf,
    }
    bound_by, pace = min(paces.items(), key=lambda item: item[1])
    steps = 2 * math.ceil(math.log2(num_nodes)) if num_nodes > 1 else 0
    return Reduced(time_s=buffer_bytes / pace + steps * node.step_s, pace_bytes_per_s=pace, bound_by=bound_by)


def memory_passes(num_devices: int, num_nodes: int) -> float:
    """How often a byte of the sum is read or written in the host's memory.

    Each device's copy is written, read to be added, and the sum is written; on the way back each device reads it.
    Between machines what is sent is read and what comes is written, and a sum of two is two reads and a write.
    """
    inside = 3.0 * num_devices + 1.0
    if num_nodes == 1:
        return inside
    trees = double_tree_ratio(num_nodes)
    added = trees / 2.0  # of what comes in, the half that goes up is added
    return inside + 2.0 * trees + 3.0 * added


def ring_reduce(node: HostedNode, num_nodes: int, buffer_bytes: float) -> Reduced:
    """One ring through all devices: each sends 2 (n - 1) / n of the buffer, in 2 (n - 1) steps.

    Inside, a device sends to the next over its port while it receives; at the machine's ends bytes go straight to and
    from the card.
    """
    count = node.num_devices * num_nodes
    sent = 2.0 * (count - 1) / count
    paces = {
        "bus": node.bus_bytes_per_s / sent,
        "root port": node.port_bytes_per_s / (2.0 * node.num_devices_per_port) / sent,
        "peer to peer": min(node.peer_bytes_per_s, node.card_bytes_per_s) / sent if num_nodes > 1 else math.inf,
    }
    bound_by, pace = min(paces.items(), key=lambda item: item[1])
    steps = 2 * (count - 1)
    return Reduced(time_s=buffer_bytes / pace + steps * node.step_s, pace_bytes_per_s=pace, bound_by=bound_by)
