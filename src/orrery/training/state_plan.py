"""A plan says at which level each kind of state is cut, and what it travels in."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.training.levels import DEVICE, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Format of an element on the wire; quantised by blocks, each with its scale."""

    element_bytes: float = 2.0
    block_elements: int = 0  # that share a scale; 0 = not quantised
    scale_bytes: float = 4.0

    @property
    def is_quantised(self) -> bool:
        """Whether elements are made narrower for the way."""
        return self.block_elements > 0

    def sent_bytes(self, elements: float) -> float:
        """Bytes on the wire for ``elements`` elements, scales included."""
        scale = self.scale_bytes / self.block_elements if self.is_quantised else 0.0
        return elements * (self.element_bytes + scale)


WIDE = Wire()


@dataclass(frozen=True, slots=True, kw_only=True)
class WireKnobs:
    """Bits of a weight and of a gradient on the way, and the elements that share a scale."""

    weight_bits: int = 8
    gradient_bits: int = 4
    block_elements: int = 256

    def __post_init__(self) -> None:
        check_range(self, "weight_bits", 2, 16)
        check_range(self, "gradient_bits", 2, 16)
        check_range(self, "block_elements", 16, 65536)

    @property
    def weight_wire(self) -> Wire:
        """Wire format of weights."""
        return self._wire(self.weight_bits)

    @property
    def gradient_wire(self) -> Wire:
        """Wire format of gradients."""
        return self._wire(self.gradient_bits)

    def _wire(self, bits: int) -> Wire:
        return Wire(element_bytes=bits / 8.0, block_elements=self.block_elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Names of levels: a state cut at a level is dealt out over the devices of each of its groups.

    A group holds one whole copy. ``secondary`` names the level of a second copy of the weights, from which the
    backward pass gathers; "device" means none.
    """

    name: str
    weights: str
    gradients: str
    optimizer: str
    secondary: str = DEVICE
    forward_wire: Wire = WIDE  # weights before the forward pass
    backward_wire: Wire = WIDE  # and before the backward pass
    gradient_wire: Wire = WIDE  # of every micro-batch
    step_wire: Wire = WIDE  # gradients and weights once a step
    exchanges_gradients: bool = False  # all-to-alls, inside a node and then between nodes, in place of a ring

    def refusal(self, topology: Topology) -> str:
        """Why the plan makes no sense, in one sentence; empty where it does."""
        w, g, o = (topology.size(x) for x in (self.weights, self.gradients, self.optimizer))
        if o < max(w, g):
            return (
                f"optimizer: cut over {o} devices, but weights over {w} and gradients over {g}; "
                f"write {self.weights if w >= g else self.gradients!r} or a level outside it."
            )
        if self.secondary != DEVICE and topology.size(self.secondary) >= w:
            return f"secondary: {self.secondary} is no nearer than {self.weights}; write a level inside it."
        return ""
