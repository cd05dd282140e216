"""FP32 everywhere, outside the tensor cores: weights 4 bytes, gradients 4, both moments 8, no second copy.

Sources: ieee-754.
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp32",
    title="FP32 everywhere",
    forward_format="fp32",
    input_gradient_format="fp32",
    weight_gradient_format="fp32",
    wide_format="fp32",
    saved_input_bytes=4.0,
    weights_bytes=4.0,
    gathered_weight_bytes=4.0,
    gradient_bytes=4.0,
    gradient_wire_bytes=4.0,
    master_bytes=0.0,
    moments_bytes=8.0,
    aliases=("float32", "single"),
    sources=("ieee-754",),
)
