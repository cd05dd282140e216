"""INT8 weights and activations."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int8",
    title="INT8 weights and activations",
    kind="integer",
    element=get_element("int8sym"),
    scaling=Scaling(levels=(Level(share="row"),)),
    rates=("int8", "bf16", "fp16"),
    aliases=("w8a8", "smoothquant", "i8", "int8w8a8"),
    source="SmoothQuant, arXiv:2211.10438",
)
