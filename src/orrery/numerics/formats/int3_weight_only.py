"""INT3 weights by groups of 128."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int3_weight_only",
    title="INT3 weights by groups of 128",
    kind="integer",
    element=get_element("int3"),
    scaling=Scaling(levels=(Level(share=(1, 128), scale=get_element("fp16")),)),
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("int3", "3bit"),
    source="GPTQ, arXiv:2210.17323",
)
