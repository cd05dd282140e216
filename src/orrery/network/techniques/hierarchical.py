"""Hierarchical: reduce-scatter inside the node, the collective of each n-th across nodes, all-gather inside."""

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import SHARE, Traffic


def rule(group: Group) -> Traffic | None:
    """Inside (g - 1)/g S a pass; across (N - 1)/N S/g a pass, every device through its own network card."""
    passes, nodes = SHARE.get(group.kind), group.num_nodes
    inside = min(group.num_devices, group.per_node)
    if passes is None or nodes < 2 or inside < 2:
        return None
    return Traffic(
        num_steps=passes * (inside - 1),
        wire_ratio=passes * (inside - 1) / inside * group.num_dimensions * group.crowding_ratio,
        num_out_steps=passes * (nodes - 1),
        out_ratio=passes * (nodes - 1) / nodes / inside,
    )


TECHNIQUE = Technique(
    name="hierarchical",
    extension_point="network.collective",
    rule=rule,
    gains="The slow network carries only S/g a device, in 2 (N - 1) steps.",
    costs="Three phases; worth it only where the node's own links are much faster.",
    claims=("rabenseifner-2004",),
)
