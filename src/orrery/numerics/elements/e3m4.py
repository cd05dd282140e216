"""FP8 e3m4 with IEEE specials, up to 15.5. ml_dtypes."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e3m4", exponent_bits=3, mantissa_bits=4, bias=3, specials="ieee")
