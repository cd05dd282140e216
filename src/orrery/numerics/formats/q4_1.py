"""llama.cpp Q4_1: 5 bits an element with its scales."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="q4_1",
    title="llama.cpp Q4_1: 5 bits an element with its scales",
    kind="integer",
    element=get_element("uint4"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("fp16")),), zero_point="minimum"),
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq4_1",),
    source="llama.cpp, table of quantisation types",
)
