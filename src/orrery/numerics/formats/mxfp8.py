"""MXFP8: e4m3, one power-of-two scale for 32."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxfp8",
    title="MXFP8: e4m3, one power-of-two scale for 32",
    kind="float",
    element=get_element("e4m3fn"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("fp8", "bf16", "fp16"),
    source="OCP Microscaling Formats 1.0",
)
