"""MXFP4: e2m1, one power-of-two scale for 32."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxfp4",
    title="MXFP4: e2m1, one power-of-two scale for 32",
    kind="float",
    element=get_element("e2m1"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("fp4", "nvfp4", "bf16", "fp16"),
    aliases=("w4mxfp4",),
    source="OCP Microscaling Formats 1.0",
)
