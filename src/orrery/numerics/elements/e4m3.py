"""FP8 e4m3 with IEEE specials: infinity, up to 240. Not the OCP format, which is e4m3fn."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e4m3", exponent_bits=4, mantissa_bits=3, bias=7, specials="ieee")
