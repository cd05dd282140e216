"""INT4 weights, INT8 activations (W4A8)."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int4_int8",
    title="INT4 weights, INT8 activations (W4A8)",
    kind="mixed",
    element=get_element("int4"),
    scaling=Scaling(levels=(Level(share=(1, 128), scale=get_element("fp16")),)),
    rates=("int8", "bf16", "fp16"),
    aliases=("w4a8", "int4awqw4a8"),
    source="QServe, arXiv:2405.04532",
)
