"""Three levels: weights lie over the nearest devices, gradients over the node, optimizer states over all."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.training.levels import Topology
from orrery.training.state_plan import Plan, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeLevelKnobs:
    """Bits of a weight and of a gradient on the way, and the elements that share a scale."""

    weight_bits: int = 8
    gradient_bits: int = 4
    block_elements: int = 256

    def __post_init__(self) -> None:
        check_range(self, "weight_bits", 2, 16)
        check_range(self, "gradient_bits", 2, 16)
        check_range(self, "block_elements", 16, 65536)


def rule(topology: Topology, knobs: ThreeLevelKnobs) -> Plan:
    """Gathers on the fastest link, reductions in the node; once a step sums and weights cross. [xu-2025-frontier]"""
    inside = [x.name for x in topology.levels if not x.is_network]
    first, node, last = topology.names[1], (inside or [topology.names[-1]])[-1], topology.names[-1]
    narrow = Wire(element_bytes=knobs.weight_bits / 8.0, block_elements=knobs.block_elements)
    return Plan(
        name="three-level-partition", weights=first, gradients=node, optimizer=last, forward_wire=narrow,
        backward_wire=narrow,
        gradient_wire=Wire(element_bytes=knobs.gradient_bits / 8.0, block_elements=knobs.block_elements),
        exchanges_gradients=True,
    )  # fmt: skip


TECHNIQUE = Technique(
    name="three-level-partition",
    seam="training.partition",
    rule=rule,
    knobs=ThreeLevelKnobs,
    gains="No micro-batch sends anything between nodes.",
    costs="Weights over few devices take much memory, and a step ends with a sum and a gather between nodes.",
    claims=("xu-2025-frontier",),
)
