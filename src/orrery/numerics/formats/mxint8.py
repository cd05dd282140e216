"""MXINT8: INT8 over 64, one power-of-two scale for 32."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxint8",
    title="MXINT8: INT8 over 64, one power-of-two scale for 32",
    kind="integer",
    element=get_element("fixed8_6"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("bf16", "fp16"),
    aliases=(),
    source="OCP Microscaling Formats 1.0",
)
