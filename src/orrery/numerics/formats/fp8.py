"""FP8 e4m3, one scale a tensor or channel."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="fp8",
    title="FP8 e4m3, one scale a tensor or channel",
    kind="float",
    element=get_element("e4m3fn"),
    scaling=Scaling(levels=(Level(share="tensor"),)),
    rates=("fp8", "bf16", "fp16"),
    aliases=("fp8e4m3", "e4m3", "float8e4m3fn", "fp8e4m3fn", "fp8dynamic", "fp8pertensor", "ptpcfp8"),
    source="OCP 8-bit Floating Point Specification 1.0",
)
