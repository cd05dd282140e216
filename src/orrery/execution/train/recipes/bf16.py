"""BF16 products with FP32 accumulation: no loss scale, no casts.

State is the framework's: an FP32 copy of the weights and FP32 moments.

Sources: kalamkar-2019 (BF16 trains like FP32 without tuning).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="bf16",
    title="BF16 products, FP32 optimizer",
    forward_format="bf16",
    input_gradient_format="bf16",
    weight_gradient_format="bf16",
    aliases=("bfloat16", "bf16-mixed", "amp_bf16"),
    sources=("kalamkar-2019",),
)
