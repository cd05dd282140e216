"""INT2 weights by groups of 64."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int2_weight_only",
    title="INT2 weights by groups of 64",
    kind="integer",
    element=get_element("int2"),
    scaling=Scaling(levels=(Level(share=(1, 64), scale=get_element("fp16")),)),
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("int2", "2bit"),
    source="weight-only quantisation at two bits",
)
