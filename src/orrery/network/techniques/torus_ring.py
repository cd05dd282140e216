"""Torus rings: one ring in every dimension, all running at once on their own part of the buffer."""

import math

from orrery.base.technique import Technique
from orrery.network.group import Group
from orrery.network.traffic import SHARE, Traffic


def rule(group: Group) -> Traffic | None:
    """d (k - 1) steps a pass for k = n^(1/d), and the bytes of a ring spread over all links."""
    passes, d = SHARE.get(group.kind), group.num_dimensions
    inside, nodes = min(group.num_devices, group.per_node), group.num_nodes
    if passes is None or d < 2 or nodes > 1:
        return None
    side = math.ceil(inside ** (1.0 / d) - 1e-9)
    return Traffic(num_steps=passes * d * (side - 1), wire_ratio=passes * (inside - 1) / inside)


TECHNIQUE = Technique(
    name="torus-ring",
    extension_point="network.collective",
    rule=rule,
    gains="Uses the links of every dimension, in d (n^(1/d) - 1) steps.",
    costs="The group must fill a box of the torus.",
    claims=("jouppi-2023", "thakur-2005"),
)
