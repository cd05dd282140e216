"""MXFP4 weights, 16-bit activations."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="mxfp4_weight_only",
    title="MXFP4 weights, 16-bit activations",
    kind="float",
    element_bits=4,
    block_elements=32,
    scale_bits=8,
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("mxfp4a16", "w4a16mxfp4"),
    source="OCP Microscaling Formats 1.0",
)
