"""MXFP6: e3m2, one power-of-two scale for 32."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxfp6_e3m2",
    title="MXFP6: e3m2, one power-of-two scale for 32",
    kind="float",
    element=get_element("e3m2"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("fp6", "fp8", "bf16"),
    aliases=(),
    source="OCP Microscaling Formats 1.0",
)
