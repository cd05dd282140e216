"""Unsigned e4m3, the block scale of NVFP4: the sign bit of the stored byte stays zero."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="ue4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn", is_signed=False)
