"""NVFP4: e2m1, one e4m3 scale for 16 and one FP32 scale a tensor."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="nvfp4",
    title="NVFP4: e2m1, one e4m3 scale for 16 and one FP32 scale a tensor",
    kind="float",
    element_bits=4,
    block_elements=16,
    scale_bits=8,
    rates=("nvfp4", "fp4", "fp8", "bf16"),
    aliases=("fp4", "e2m1", "modeloptfp4"),
    source="NVIDIA: Introducing NVFP4",
)
