"""Binary32, IEEE 754-2019."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="fp32", exponent_bits=8, mantissa_bits=23, bias=127, specials="ieee")
