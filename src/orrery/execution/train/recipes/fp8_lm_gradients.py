"""FP8-LM, first level: gradients are kept and reduced in FP8 under one scale that all ranks share.

Weights are FP16 under a scale and need no second copy; both moments stay FP32. A step agrees on the scales of inputs,
of gradients of outputs, and of weight gradients: three small reductions. Casts are those of ``fp8``.
Sources: peng-2023 (arXiv:2310.18313, section 2.1), ms-amp (table of levels, O1: weights FP16, gradients FP8, 4 + 4).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp8-lm-gradients",
    title="FP8-LM level 1: FP8 products, gradients and their collectives",
    forward_format="fp8",
    input_gradient_format="fp8",
    weight_gradient_format="fp8",
    saved_input_bytes=1.0,
    weights_bytes=2.0,
    weight_copy_bytes=2.0,
    gradient_wire_bytes=1.0,
    gradient_bytes=1.0,
    master_bytes=0.0,
    moments_bytes=8.0,
    input_casts=4.0 / 3.0,
    gradient_casts=4.0 / 3.0,
    weight_casts=4.0 / 3.0,
    num_amax_reduces=3,
    aliases=("ms-amp-o1",),
    sources=("peng-2023", "ms-amp"),
)
