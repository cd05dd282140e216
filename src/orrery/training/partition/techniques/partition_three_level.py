"""Three levels: weights lie over the nearest devices, gradients over the node, optimizer states over all."""

from orrery.base.technique import Technique
from orrery.training.levels import Topology
from orrery.training.state_plan import Plan, WireKnobs


def rule(topology: Topology, knobs: WireKnobs) -> Plan:
    """Gathers on the fastest link, reductions in the node; once a step sums and weights cross. [xu-2025-frontier]"""
    inside = [x.name for x in topology.levels if not x.is_network]
    first, node, last = topology.names[1], (inside or [topology.names[-1]])[-1], topology.names[-1]
    return Plan(
        name="three-level-partition",
        weights=first,
        gradients=node,
        optimizer=last,
        forward_wire=knobs.weight_wire,
        backward_wire=knobs.weight_wire,
        gradient_wire=knobs.gradient_wire,
        exchanges_gradients=True,
    )


TECHNIQUE = Technique(
    name="three-level-partition",
    word="three-level",
    extension_point="training.partition",
    rule=rule,
    knobs=WireKnobs,
    gains="No micro-batch sends anything between nodes.",
    costs="Weights over few devices take much memory, and a step ends with a sum and a gather between nodes.",
    claims=("xu-2025-frontier",),
)
