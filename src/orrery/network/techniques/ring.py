"""Ring: every device passes one n-th of the buffer to its neighbour, again and again."""

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import SHARE, Traffic


def rule(group: Group) -> Traffic | None:
    """n - 1 steps of S/n a pass; broadcasts are pipelined down the ring. Across nodes one ring per network card.

    On a torus one ring uses one dimension only, so it sees 1/d of a device's links.
    """
    n, passes = group.num_devices, SHARE.get(group.kind)
    nodes, inside = group.num_nodes, min(group.num_devices, group.per_node)
    if passes is None and group.kind != "broadcast":
        return None
    lap = n - 1
    steps = (passes or 1) * lap
    ratio = passes * lap / n if passes else 1.0
    out_steps = (passes or 1) * (nodes - 1)
    wire = ratio * group.num_dimensions * group.crowding_ratio if inside > 1 else 0.0
    return Traffic(
        num_steps=steps - out_steps,
        wire_ratio=wire,
        num_out_steps=out_steps,
        out_ratio=ratio / inside if nodes > 1 else 0.0,
    )


TECHNIQUE = Technique(
    name="ring",
    extension_point="network.collective",
    rule=rule,
    gains="Sends the fewest bytes that a network without arithmetic allows.",
    costs="The number of steps grows with the number of devices.",
    claims=("thakur-2005", "patarasuk-2009"),
)
