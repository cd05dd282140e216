"""NVINT4: symmetric INT4, one e4m3 scale for 16 and one FP32 scale a tensor."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="nvint4",
    title="NVINT4: symmetric INT4, one e4m3 scale for 16 and one FP32 scale a tensor",
    kind="integer",
    element=get_element("int4sym"),
    scaling=Scaling(levels=(Level(share=(1, 16), scale=get_element("e4m3fn")), Level(share="tensor"))),
    rates=("bf16", "fp16"),
    aliases=(),
    source="INT v.s. FP, arXiv:2510.25602",
)
