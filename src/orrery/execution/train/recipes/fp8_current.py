"""FP8 with one scale a tensor taken from the tensor itself: a pass finds the largest value, a second one casts.

2 bytes read for the maximum, then 2 read and 1 + 1 written (the tensor and its transpose): 6 bytes, twice a plain
cast's 3. A scale belongs to the step that uses it, so there is no history to reduce over data-parallel ranks.
Sources: transformer-engine (Float8CurrentScaling), torchao-float8 (tensorwise dynamic scaling).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp8_current",
    title="FP8 products, current scaling of whole tensors",
    forward_format="fp8",
    input_gradient_format="fp8",
    weight_gradient_format="fp8",
    saved_input_bytes=1.0,
    weight_copy_bytes=2.0,
    input_casts=2.0,
    gradient_casts=2.0,
    weight_casts=2.0,
    aliases=("fp8-cs", "fp8_tensorwise", "float8"),
    sources=("transformer-engine", "torchao-float8"),
)
