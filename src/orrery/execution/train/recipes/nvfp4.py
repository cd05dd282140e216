"""NVFP4 products, with what keeps them stable: wide layers, rotated inputs of the weight gradient, 2-D weight scales.

An element takes 1/2 byte and 1/16 of a scale. The FP32 scale of the whole tensor needs its largest value first.
Inputs and gradients: 2 bytes read for the maxima (of the tensor and of its rotated transpose, in one pass), 2 + 9/16
for the plain copy, 2 + 9/16 for the copy that goes through the random Hadamard transform (16 x 16, in registers):
7.125 bytes, 2.375 of a plain cast's 3. Gradients are rounded stochastically, which moves no bytes. Weights: 2 read for
the maximum, 2 read and twice 9/16 written under the same 16 x 16 scales: 5.125 bytes, 1.7083.
The 12B model of the source keeps its first two and last eight of 62 blocks in BF16: 16 % of the linear layers.
Sources: nvidia-nvfp4-2025 (arXiv:2509.25149, sections 3 and 4), transformer-engine (NVFP4BlockScaling).
"""

from orrery.execution.train.recipe import Recipe

ELEMENT_BYTES = 0.5 + 1.0 / 16.0

RECIPE = Recipe(
    name="nvfp4",
    title="NVFP4 products, a sixth of the layers in BF16",
    forward_format="nvfp4",
    input_gradient_format="nvfp4",
    weight_gradient_format="nvfp4",
    wide_layers_frac=0.16,
    saved_input_bytes=ELEMENT_BYTES,
    weight_copy_bytes=2.0 * ELEMENT_BYTES,
    input_casts=(2.0 + 2.0 * (2.0 + ELEMENT_BYTES)) / 3.0,
    gradient_casts=(2.0 + 2.0 * (2.0 + ELEMENT_BYTES)) / 3.0,
    weight_casts=(2.0 + 2.0 + 2.0 * ELEMENT_BYTES) / 3.0,
    aliases=("fp4", "te_nvfp4"),
    sources=("nvidia-nvfp4-2025", "transformer-engine"),
)
