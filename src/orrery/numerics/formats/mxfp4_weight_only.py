"""MXFP4 weights, 16-bit activations."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxfp4_weight_only",
    title="MXFP4 weights, 16-bit activations",
    kind="float",
    element=get_element("e2m1"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("mxfp4a16", "w4a16mxfp4"),
    source="OCP Microscaling Formats 1.0",
)
