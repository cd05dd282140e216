"""FP8 with a scale for 1 x 128 elements of inputs and gradients and 128 x 128 of weights.

A block's maximum is found in registers, so one read serves: 2 read, 1 + 1 written along both directions, and an FP32
scale for 128 elements each time: 2 + 2 (1 + 4/128) bytes, 1.3542 of a plain cast's 3. Weights share a scale by
128 x 128 blocks, the same in both directions. All three products are e4m3.
Sources: deepseek-v3-2024 (section 3.3), transformer-engine (Float8BlockScaling).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp8_block",
    title="FP8 products, scales for 1 x 128 and 128 x 128 blocks",
    forward_format="fp8_block",
    input_gradient_format="fp8_block",
    weight_gradient_format="fp8_block",
    saved_input_bytes=1.0 + 4.0 / 128.0,
    weight_copy_bytes=2.0,
    input_casts=(2.0 + 2.0 * (1.0 + 4.0 / 128.0)) / 3.0,
    gradient_casts=(2.0 + 2.0 * (1.0 + 4.0 / 128.0)) / 3.0,
    weight_casts=4.0 / 3.0,
    aliases=("fp8_blockwise", "fp8-sc", "fp8_subchannel", "deepseek_fp8"),
    sources=("deepseek-v3-2024", "transformer-engine"),
)
