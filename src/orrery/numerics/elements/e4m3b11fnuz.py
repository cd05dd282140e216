"""FP8 e4m3 with bias 11 and one NaN, up to 30. ml_dtypes."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e4m3b11fnuz", exponent_bits=4, mantissa_bits=3, bias=11, specials="fnuz")
