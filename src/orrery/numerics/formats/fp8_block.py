"""FP8 e4m3 with FP32 scales: 1x128 activations, 128x128 weights."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="fp8_block",
    title="FP8 e4m3 with FP32 scales: 1x128 activations, 128x128 weights",
    kind="float",
    element_bits=8,
    block_elements=16384,
    scale_bits=32,
    rates=("fp8", "bf16", "fp16"),
    aliases=("fp8blockscale", "fp8blockwise", "deepseekfp8"),
    source="DeepSeek-V3 technical report, section 3.3",
)
