"""IEEE single precision."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element

FORMAT = Format(
    name="fp32",
    title="IEEE single precision",
    kind="float",
    element=get_element("fp32"),
    rates=("fp32",),
    aliases=("float32", "float", "f32", "single"),
    source="IEEE 754-2019",
)
