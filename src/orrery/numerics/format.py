"""What a number format is to a machine: bits an element, who shares a scale, and which arithmetic it feeds."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["float", "integer", "lookup", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One storage format.

    ``rates`` names, best first, the rows of a device's peak table that a matrix product of two operands of this
    format may use. ``weight_only`` formats are unpacked to 16 bits before they are multiplied.
    """

    name: str  # as typed: "nvfp4"
    title: str
    kind: Kind
    element_bits: float
    block_elements: int = 0  # elements that share one scale; 0 = one scale a tensor or channel, not counted
    scale_bits: float = 0.0
    rates: tuple[str, ...]
    weight_only: bool = False
    aliases: tuple[str, ...] = ()
    source: str = ""  # who defines it

    @property
    def bits_per_element(self) -> float:
        """Element bits plus its share of the block's scale."""
        return self.element_bits + (self.scale_bits / self.block_elements if self.block_elements else 0.0)

    @property
    def bytes_per_element(self) -> float:
        """``bits_per_element`` / 8."""
        return self.bits_per_element / 8
