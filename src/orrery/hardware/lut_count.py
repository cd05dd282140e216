"""Lookup tables of an FPGA that one multiply-accumulate takes, for integers and for small floats.

What a table with six inputs does: a 4:1 multiplexer in one (AMD 7 Series CLB User Guide, UG474, Multiplexers), and
one bit of an addition with the carry chain beside it (AMD UltraScale CLB User Guide, UG574, Carry Logic: a
multiplexer and an XOR a bit). Four inputs of such a table are free for logic before the addition, so that partial
products are formed in the tables that add them. No multiplier block is used, nothing is shared, and registers are not
counted: they stand beside the tables.

    integers   product + accumulator of b_w + b_a + log2(terms) bits
    floats     product of significands + adder of exponents + shifter + accumulator, which is wide enough for every sum

Floats are summed exactly, in fixed point: rounding after each addition would take a second shifter and a leading-zero
count.
"""

import math
from dataclasses import dataclass
from typing import Literal

from orrery.base.errors import OutOfRange
from orrery.numerics.element import Element
from orrery.numerics.families.fixed import Fixed
from orrery.numerics.families.minifloat import Minifloat


@dataclass(frozen=True, slots=True, kw_only=True)
class LutCount:
    """Tables by what they are for."""

    multiplier: int
    exponents: int  # their adder, hidden bits and the sign
    shifter: int
    accumulator: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.multiplier + self.exponents + self.shifter + self.accumulator


def mac_luts(weight: Element, activation: Element, num_terms: int) -> LutCount:
    """Look-up tables of one multiplier and an accumulator that takes up ``num_terms`` products without overflow.

    >>> from orrery.numerics.names import get_element
    >>> mac_luts(get_element("int8"), get_element("int8"), 1024).total
    89
    """
    if num_terms < 1:
        raise OutOfRange(f"num_terms = {num_terms}; write 1 or more.")
    headroom = math.ceil(math.log2(num_terms))
    if isinstance(weight, Fixed) and isinstance(activation, Fixed):
        product_bits = weight.bits + activation.bits
        return LutCount(
            multiplier=product_luts(weight.bits, activation.bits),
            exponents=0,
            shifter=0,
            accumulator=product_bits + headroom,
        )
    if isinstance(weight, Minifloat) and isinstance(activation, Minifloat):
        return _of_floats(weight, activation, headroom)
    raise OutOfRange(
        f"{weight.name} x {activation.name}: tables are counted for two integers or two floats; write those."
    )


def product_luts(first_bits: int, second_bits: int) -> int:
    """An array: the first row adds two partial products, each further row one more."""
    few, many = sorted((first_bits, second_bits))
    return max(1, few - 1) * (many + (few > 1))


def _of_floats(weight: Minifloat, activation: Minifloat, headroom: int) -> LutCount:
    """Significands with their hidden bits; subnormal numbers share the lowest exponent."""
    significands = weight.mantissa_bits + 1, activation.mantissa_bits + 1
    num_shifts = sum(max(1, 2**e.exponent_bits - 1 - (e.specials == "ieee")) - 1 for e in (weight, activation))
    product_bits = sum(significands) + num_shifts
    levels = math.ceil(math.log2(num_shifts + 1) / 2)
    return LutCount(
        multiplier=product_luts(*significands),
        exponents=max(weight.exponent_bits, activation.exponent_bits) + 1 + 2 + 1,
        shifter=product_bits * levels,
        accumulator=product_bits + 1 + headroom,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DspCount:
    """Multiplier blocks of one multiply-accumulate, and the tables beside them."""

    slices: float
    luts: int


SLICE_BITS = (27, 18)
"""Operands of one block (AMD UltraScale DSP Slice User Guide, UG579: 27 x 18 bits, with a 48-bit accumulator)."""

PACKED = ((4, 4), (8, 2))
"""Operands of at most so many bits, and how many products one block forms of them at once: four of INT4 (AMD, WP521)
and two of INT8 that share an operand (AMD, WP486)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """One multiply-accumulate of two operands in a format."""

    luts: int
    dsps: float  # multiplier blocks; 0 where tables do it all


def mac_circuit(element: Element, cost: Literal["lut", "dsp"], num_terms: int) -> Circuit:
    """The circuit in lookup tables alone, or with multiplier blocks."""
    if cost == "dsp":
        found = mac_dsps(element, element, num_terms)
        return Circuit(luts=found.luts, dsps=found.slices)
    return Circuit(luts=mac_luts(element, element, num_terms).total, dsps=0.0)


def mac_dsps(weight: Element, activation: Element, num_terms: int) -> DspCount:
    """Multiplier blocks of one multiply-accumulate. Integers add up in the block's own accumulator; floats multiply
    their significands there, and shift and add in tables as without it.

    >>> from orrery.numerics.names import get_element
    >>> mac_dsps(get_element("int8"), get_element("int8"), 1024)
    DspCount(slices=0.5, luts=0)
    """
    tables = mac_luts(weight, activation, num_terms)
    if isinstance(weight, Minifloat) and isinstance(activation, Minifloat):
        operands = sorted((weight.mantissa_bits + 2, activation.mantissa_bits + 2))  # hidden bit and sign
        luts = tables.total - tables.multiplier
    else:
        operands, luts = sorted((weight.bits, activation.bits)), 0
    few, many = operands
    if few > SLICE_BITS[1] or many > SLICE_BITS[0]:
        raise OutOfRange(f"{weight.name} x {activation.name}: wider than a block of 27 x 18 bits; write fewer bits.")
    return DspCount(slices=1.0 / next((at_once for most, at_once in PACKED if many <= most), 1), luts=luts)
