"""MXFP8: e4m3, one power-of-two scale for 32."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="mxfp8",
    title="MXFP8: e4m3, one power-of-two scale for 32",
    kind="float",
    element_bits=8,
    block_elements=32,
    scale_bits=8,
    rates=("fp8", "bf16", "fp16"),
    source="OCP Microscaling Formats 1.0",
)
