"""FP8 with one delayed scale a tensor: e4m3 forward, e5m2 for gradients; the scale comes from earlier steps' maxima.

One kernel reads 16 bits and writes the narrow tensor and its transpose (FP8 tensor cores of Hopper take both operands
with the summed index last): 2 + 1 + 1 bytes, 4/3 of a plain cast's 3. Weights stay in 16 bits and get both copies.
What is kept of an input is the transpose, 1 byte. Maxima of all tensors are reduced over the ranks in one message after
the forward and one after the backward pass. Heads, routers, norms and attention stay in BF16.
Sources: transformer-engine (DelayedScaling, HYBRID), micikevicius-2022 (the formats).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp8",
    title="FP8 products, delayed scaling of whole tensors",
    forward_format="fp8",
    input_gradient_format="fp8",
    weight_gradient_format="fp8",
    saved_input_bytes=1.0,
    weight_copy_bytes=2.0,
    input_casts=4.0 / 3.0,
    gradient_casts=4.0 / 3.0,
    weight_casts=4.0 / 3.0,
    num_amax_reduces=2,
    aliases=("fp8_delayed", "fp8-hybrid", "fp8-ds", "amp_fp8", "fp8-e4m3"),
    sources=("transformer-engine", "micikevicius-2022"),
)
