"""Number formats as a machine sees them: bits an element, sharing of scales, and the arithmetic that they feed."""

from dataclasses import dataclass, field
from typing import Literal

from orrery.numerics.element import Element
from orrery.numerics.scaling import Scaling

Kind = Literal["float", "integer", "lookup", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One storage format: an element and how it is scaled.

    ``rates`` names, best first, the rows of a device's peak table that a matrix product of two operands of this
    format may use. ``weight_only`` formats are unpacked to 16 bits before they are multiplied. A mixture of several
    formats has no element of its own, only the bits that it takes on average.
    """

    name: str  # as typed: "nvfp4"
    title: str
    kind: Kind
    element: Element | None = None
    scaling: Scaling = field(default_factory=Scaling)
    stored_bits: float = 0.0  # of one element in memory, where that is not the element's own width
    rates: tuple[str, ...] = ()
    weight_only: bool = False
    head_format: str = ""  # of the output matrix beside weights of this format, where a container rounds it too
    aliases: tuple[str, ...] = ()
    source: str = ""  # who defines it

    @property
    def element_bits(self) -> float:
        """Bits of one element in memory, without its share of the scale."""
        return self.stored_bits or (self.element.bits if self.element else 0.0)

    @property
    def block_elements(self) -> int:
        """Elements that share one scale; 0 = one scale a tensor or channel, not counted."""
        return self.scaling.block_elements

    @property
    def bits_per_element(self) -> float:
        """Element bits plus its share of the block's scale."""
        return self.element_bits + self.scaling.bits_per_element

    @property
    def bytes_per_element(self) -> float:
        """``bits_per_element`` / 8."""
        return self.bits_per_element / 8
