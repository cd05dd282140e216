"""FP8 e5m2 of AMD CDNA 3 and Graphcore: no negative zero, one NaN. Noune et al. 2022."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="e5m2fnuz", exponent_bits=5, mantissa_bits=2, bias=16, specials="fnuz")
