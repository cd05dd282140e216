"""ZeRO++: ZeRO-3 with a second copy of the weights in every node, and narrow weights and gradients on the way."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.training.levels import DEVICE, Topology
from orrery.training.state_plan import Plan, Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroPlusPlusKnobs:
    """Bits of a weight and of a gradient on the way, and the elements that share a scale."""

    weight_bits: int = 8
    gradient_bits: int = 4
    block_elements: int = 256

    def __post_init__(self) -> None:
        check_range(self, "weight_bits", 2, 16)
        check_range(self, "gradient_bits", 2, 16)
        check_range(self, "block_elements", 16, 65536)


def rule(topology: Topology, knobs: ZeroPlusPlusKnobs) -> Plan:
    """Forward gathers in 8 bits (qwZ), backward in the node (hpZ), all-to-alls in 4 bits (qgZ). [wang-2024-zeropp]"""
    inside = [x.name for x in topology.levels if not x.is_network]
    last = topology.names[-1]
    return Plan(
        name="zero-plus-plus", weights=last, gradients=last, optimizer=last,
        secondary=inside[-1] if inside and inside[-1] != last else DEVICE,
        forward_wire=Wire(element_bytes=knobs.weight_bits / 8.0, block_elements=knobs.block_elements),
        gradient_wire=Wire(element_bytes=knobs.gradient_bits / 8.0, block_elements=knobs.block_elements),
        exchanges_gradients=True,
    )  # fmt: skip


TECHNIQUE = Technique(
    name="zero-plus-plus",
    seam="training.partition",
    rule=rule,
    knobs=ZeroPlusPlusKnobs,
    gains="A quarter of the bytes between nodes: half for the forward weights, none backward, a quarter for gradients.",
    costs="A second copy of the weights in every node, casts on both sides, and gradients of 4 bits.",
    claims=("wang-2024-zeropp",),
)
