"""Unsigned e5m3: a block scale with the range of e5m2 and the steps of e4m3, up to 114688."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="ue5m3", exponent_bits=5, mantissa_bits=3, bias=15, specials="fn", is_signed=False)
