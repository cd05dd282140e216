"""IEEE half precision."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element

FORMAT = Format(
    name="fp16",
    title="IEEE half precision",
    kind="float",
    element=get_element("fp16"),
    rates=("fp16", "bf16"),
    aliases=("float16", "half", "f16"),
    source="IEEE 754-2019",
)
