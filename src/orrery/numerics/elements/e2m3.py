"""FP6 e2m3: all codes are numbers, up to 7.5. OCP Microscaling Formats 1.0."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e2m3", exponent_bits=2, mantissa_bits=3, bias=1, specials="finite")
