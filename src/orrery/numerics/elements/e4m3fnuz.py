"""FP8 e4m3 of AMD CDNA 3 and Graphcore: no negative zero, one NaN, up to 240. Noune et al. 2022."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e4m3fnuz", exponent_bits=4, mantissa_bits=3, bias=8, specials="fnuz")
