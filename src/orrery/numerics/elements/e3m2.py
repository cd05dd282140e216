"""FP6 e3m2: all codes are numbers, up to 28. OCP Microscaling Formats 1.0."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials="finite")
