"""MXFP6: e3m2 or e2m3, one power-of-two scale for 32."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxfp6",
    title="MXFP6: e3m2 or e2m3, one power-of-two scale for 32",
    kind="float",
    element=get_element("e2m3"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("fp6", "fp8", "bf16"),
    aliases=("fp6",),
    source="OCP Microscaling Formats 1.0",
)
