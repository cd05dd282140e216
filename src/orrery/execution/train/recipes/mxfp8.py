"""MXFP8: 32 elements share a power-of-two scale, along the summed index of each product.

Scales of the two directions differ, so every tensor is quantised twice from 16 bits, in one kernel: 2 read, twice
(1 + 1/32) written: 4.0625 bytes, 1.3542 of a plain cast's 3. Both copies of a weight are kept: 2.0625 bytes. An input's
copy along the other direction is what waits for the backward pass: 1.03125 bytes. e4m3 in all products.
Sources: transformer-engine (MXFP8BlockScaling), rouhani-2023 (microscaling formats), mishra-2025 (recipe).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="mxfp8",
    title="MXFP8 products",
    forward_format="mxfp8",
    input_gradient_format="mxfp8",
    weight_gradient_format="mxfp8",
    saved_input_bytes=1.0 + 1.0 / 32.0,
    weight_copy_bytes=2.0 * (1.0 + 1.0 / 32.0),
    input_casts=(2.0 + 2.0 * (1.0 + 1.0 / 32.0)) / 3.0,
    gradient_casts=(2.0 + 2.0 * (1.0 + 1.0 / 32.0)) / 3.0,
    weight_casts=(2.0 + 2.0 * (1.0 + 1.0 / 32.0)) / 3.0,
    aliases=("fp8-mx", "mx", "te_mxfp8"),
    sources=("transformer-engine", "rouhani-2023", "mishra-2025"),
)
