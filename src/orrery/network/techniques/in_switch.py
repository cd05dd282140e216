"""In-switch reduction: the switch adds what all devices send and multicasts the sum (NVLink SHARP)."""

import math

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import Traffic, double_tree_ratio


def rule(group: Group) -> Traffic | None:
    """Every device answers all reads of the switch with its S bytes and writes its own S/n of the sum back.

    Three or more devices only: with two, one exchange is already the least. Between nodes the sums of the nodes
    go through a double binary tree.
    """
    inside, nodes = min(group.num_devices, group.per_node), group.num_nodes
    if group.kind != "all_reduce" or not group.has_reduction or inside < 3:
        return None
    return Traffic(
        num_steps=2,
        wire_ratio=1.0 + 1.0 / inside,
        num_out_steps=2 * math.ceil(math.log2(nodes)),
        out_ratio=double_tree_ratio(nodes) / inside if nodes > 1 else 0.0,
        staged_ratio=1.0 / inside,
        transports=("in_switch",),
    )


TECHNIQUE = Technique(
    name="in-switch-reduction",
    extension_point="network.collective",
    rule=rule,
    gains="Sends (1 + 1/n) S instead of 2 (n - 1)/n S, in two steps for any number of devices.",
    costs="Needs a switch that adds, and registered multicast buffers; slow to start.",
    claims=("klenk-2020", "nccl"),
)
