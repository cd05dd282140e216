"""TF32 products: tensors are FP32 in memory and on the wire, and lose 13 bits inside the tensor cores.

Attention's products are matrix products too, so the wide format is TF32 as well: no casts, 4 bytes an element.
Sources: nvidia-a100-whitepaper (TF32: 8 bits of exponent, 10 of mantissa, FP32 in and out).
"""

from dataclasses import replace

from orrery.execution.train.recipes import fp32

RECIPE = replace(
    fp32.RECIPE,
    name="tf32",
    title="TF32 products, FP32 everywhere else",
    forward_format="tf32",
    input_gradient_format="tf32",
    weight_gradient_format="tf32",
    wide_format="tf32",
    aliases=("tensorfloat32",),
    sources=("nvidia-a100-whitepaper",),
)
