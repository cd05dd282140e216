"""Binary16, IEEE 754-2019."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="fp16", exponent_bits=5, mantissa_bits=10, bias=15, specials="ieee")
