"""Throughput exchange: a token is sent once to each device that holds any of its experts, across nodes once a node."""

import math

from orrery.base.technique import Technique
from orrery.network.routing import Copies, Routing


def rule(routing: Routing) -> Copies:
    """One copy for each node hit over the network, passed on inside to each device hit; every device alike.

    A device relays as much as it receives, so what it forwards inside is what the whole group sends: D (g - 1)/g
    for D devices hit in all. The counts and the end of the transfer are agreed on in 2 log2 N messages between nodes.
    """
    group = routing.group
    n, nodes, inside = group.num_devices, group.num_nodes, min(group.num_devices, group.per_node)
    hit = routing.places_hit(n)
    across = routing.places_hit(nodes) * (nodes - 1) / nodes if nodes > 1 else 0.0
    return Copies(
        inside_ratio=hit * (inside - 1) / inside,
        across_ratio=across,
        local_ratio=hit,
        num_out_steps=2 * math.ceil(math.log2(nodes)),
        transport="per_device",
    )


TECHNIQUE = Technique(
    name="per-device",
    extension_point="network.exchange",
    rule=rule,
    gains="Each token crosses each link at most once.",
    costs="Counts must be exchanged first, and relays must wait for the network.",
    claims=("deepep", "tensorrt-llm"),
)
