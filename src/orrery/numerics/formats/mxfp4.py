"""MXFP4: e2m1, one power-of-two scale for 32."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="mxfp4",
    title="MXFP4: e2m1, one power-of-two scale for 32",
    kind="float",
    element_bits=4,
    block_elements=32,
    scale_bits=8,
    rates=("fp4", "nvfp4", "bf16", "fp16"),
    aliases=("w4mxfp4",),
    source="OCP Microscaling Formats 1.0",
)
