"""E8M0: powers of two from 2^-127 to 2^127 and NaN, the block scale of MX. OCP Microscaling Formats 1.0."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(
    name="ue8m0", exponent_bits=8, mantissa_bits=0, bias=127, specials="fn", is_signed=False, has_zero=False
)
