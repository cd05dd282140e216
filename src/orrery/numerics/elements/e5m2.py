"""FP8 e5m2: IEEE specials, up to 57344. OCP 8-bit Floating Point 1.0."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e5m2", exponent_bits=5, mantissa_bits=2, bias=15, specials="ieee")
