"""FP8 e4m3 as tensor cores multiply it: no infinity, one NaN a sign, up to 448. OCP 8-bit Floating Point 1.0."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e4m3fn", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn")
