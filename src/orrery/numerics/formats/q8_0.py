"""llama.cpp Q8_0: 8.5 bits an element with its scales."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="q8_0",
    title="llama.cpp Q8_0: 8.5 bits an element with its scales",
    kind="integer",
    element=get_element("int8"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("fp16")),)),
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq8_0",),
    source="llama.cpp, table of quantisation types",
)
