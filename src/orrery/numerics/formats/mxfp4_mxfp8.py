"""MXFP4 weights, MXFP8 activations."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="mxfp4_mxfp8",
    title="MXFP4 weights, MXFP8 activations",
    kind="mixed",
    element_bits=4,
    block_elements=32,
    scale_bits=8,
    rates=("fp8", "bf16", "fp16"),
    aliases=("w4a8mxfp4mxfp8",),
    source="OCP Microscaling Formats 1.0",
)
