"""bfloat16: the upper half of an FP32 number. Intel, BFLOAT16 hardware numerics definition, 2018."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="bf16", exponent_bits=8, mantissa_bits=7, bias=127, specials="ieee")
