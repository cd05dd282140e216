"""ZeRO++: ZeRO-3 with a second copy of the weights in every node, and narrow weights and gradients on the way."""

from orrery.base.technique import Technique
from orrery.training.levels import DEVICE, Topology
from orrery.training.state_plan import Plan, WireKnobs


def rule(topology: Topology, knobs: WireKnobs) -> Plan:
    """Forward gathers in 8 bits (qwZ), backward in the node (hpZ), all-to-alls in 4 bits (qgZ). [wang-2024-zeropp]"""
    inside = [x.name for x in topology.levels if not x.is_network]
    last = topology.names[-1]
    return Plan(
        name="zero-plus-plus",
        weights=last,
        gradients=last,
        optimizer=last,
        secondary=inside[-1] if inside and inside[-1] != last else DEVICE,
        forward_wire=knobs.weight_wire,
        gradient_wire=knobs.gradient_wire,
        exchanges_gradients=True,
    )


TECHNIQUE = Technique(
    name="zero-plus-plus",
    extension_point="training.partition",
    rule=rule,
    knobs=WireKnobs,
    gains="A quarter of the bytes between nodes: half for the forward weights, none backward, a quarter for gradients.",
    costs="A second copy of the weights in every node, casts on both sides, and gradients of 4 bits.",
    claims=("wang-2024-zeropp",),
)
