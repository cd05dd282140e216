"""Double binary tree between nodes, a chain inside them: latency grows with the logarithm of the nodes."""

import math

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import Traffic, double_tree_ratio


def rule(group: Group) -> Traffic | None:
    """Two trees carry half the buffer each, so every node is a leaf in one and sends at most 2 S in all.

    Up and down: 2 ceil(log2 N) messages across, 2 (g - 1) along the chain inside. A broadcast only goes down.
    """
    if group.kind not in ("all_reduce", "broadcast") or group.num_nodes < 2:
        return None
    ways = 2 if group.kind == "all_reduce" else 1
    inside = min(group.num_devices, group.per_node)
    across = double_tree_ratio(group.num_nodes) if ways == 2 else 1.0
    return Traffic(
        num_steps=ways * (inside - 1),
        wire_ratio=ways * group.num_dimensions * group.crowding_ratio * (inside > 1),
        num_out_steps=ways * math.ceil(math.log2(group.num_nodes)),
        out_ratio=across / inside,
    )


TECHNIQUE = Technique(
    name="tree",
    extension_point="network.collective",
    rule=rule,
    gains="Few steps between many nodes.",
    costs="Sends up to n / (n - 1) times the bytes of a ring.",
    claims=("sanders-2009", "nccl"),
)
