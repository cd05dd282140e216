"""MXFP6: e3m2 or e2m3, one power-of-two scale for 32."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="mxfp6",
    title="MXFP6: e3m2 or e2m3, one power-of-two scale for 32",
    kind="float",
    element_bits=6,
    block_elements=32,
    scale_bits=8,
    rates=("fp6", "fp8", "bf16"),
    aliases=("fp6",),
    source="OCP Microscaling Formats 1.0",
)
