"""TensorFloat-32: what NVIDIA tensor cores read of an FP32 number; 19 bits. NVIDIA A100 whitepaper."""

from orrery.numerics.families.minifloat import Minifloat

ELEMENT = Minifloat(name="tf32", exponent_bits=8, mantissa_bits=10, bias=127, specials="ieee")
