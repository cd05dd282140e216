"""INT4 weights and activations (W4A4), one scale a channel or token."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int4_int4",
    title="INT4 weights and activations (W4A4), one scale a channel or token",
    kind="integer",
    element=get_element("int4sym"),
    scaling=Scaling(levels=(Level(share="row"),)),
    rates=("int4", "int8", "bf16", "fp16"),
    aliases=("w4a4",),
    source="HAWQ-V3, arXiv:2011.10680",
)
