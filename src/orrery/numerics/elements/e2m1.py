"""FP4 e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their opposites. OCP Microscaling Formats 1.0."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials="finite")
