"""llama.cpp Q5_0: 5.5 bits an element with its scales."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="q5_0",
    title="llama.cpp Q5_0: 5.5 bits an element with its scales",
    kind="integer",
    element=get_element("int5"),
    scaling=Scaling(levels=(Level(share=(1, 32), scale=get_element("fp16")),), rule="extreme"),
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq5_0",),
    source="llama.cpp, table of quantisation types",
)
