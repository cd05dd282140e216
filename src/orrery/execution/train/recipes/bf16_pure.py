"""Training wholly in BF16: weights 2 bytes, gradients 2, both moments 2 + 2, and no FP32 copy of the weights.

PyTorch's AdamW keeps its moments in the type of the parameters, so a model held in BF16 has BF16 moments; FSDP's
``PURE`` mixed precision (Composer), ``bf16-true`` (Lightning) and torchtune's ``dtype: bf16`` are this.
Sources: pytorch-adamw, composer-fsdp.
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="bf16_pure",
    title="BF16 products, BF16 weights and optimizer",
    forward_format="bf16",
    input_gradient_format="bf16",
    weight_gradient_format="bf16",
    weights_bytes=2.0,
    gradient_bytes=2.0,
    gradient_wire_bytes=2.0,
    master_bytes=0.0,
    moments_bytes=4.0,
    aliases=("bf16-true", "pure_bf16"),
    sources=("pytorch-adamw", "composer-fsdp"),
)
