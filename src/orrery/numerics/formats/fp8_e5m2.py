"""FP8 e5m2, one scale a tensor."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="fp8_e5m2",
    title="FP8 e5m2, one scale a tensor",
    kind="float",
    element=get_element("e5m2"),
    scaling=Scaling(levels=(Level(share="tensor"),)),
    rates=("fp8", "bf16", "fp16"),
    aliases=("e5m2", "float8e5m2"),
    source="OCP 8-bit Floating Point Specification 1.0",
)
