"""FP16 products with a loss scale: all ranks agree once a step whether any gradient overflowed.

Sources: micikevicius-2018 (FP32 copy of the weights, loss scaling).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp16",
    title="FP16 products with a loss scale, FP32 optimizer",
    forward_format="fp16",
    input_gradient_format="fp16",
    weight_gradient_format="fp16",
    wide_format="fp16",
    num_amax_reduces=1,
    aliases=("float16", "half", "fp16-mixed", "amp_fp16"),
    sources=("micikevicius-2018",),
)
