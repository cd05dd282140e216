"""MXFP4 weights, MXFP8 activations."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxfp4_mxfp8",
    title="MXFP4 weights, MXFP8 activations",
    kind="mixed",
    element=get_element("e2m1"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("fp8", "bf16", "fp16"),
    aliases=("w4a8mxfp4mxfp8",),
    source="OCP Microscaling Formats 1.0",
)
