"""MXINT4: INT4 over 4, one power-of-two scale for 32."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="mxint4",
    title="MXINT4: INT4 over 4, one power-of-two scale for 32",
    kind="integer",
    element=get_element("fixed4_2sym"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("ue8m0")),), rule="floor"),
    rates=("bf16", "fp16"),
    aliases=(),
    source="INT v.s. FP, arXiv:2510.25602",
)
