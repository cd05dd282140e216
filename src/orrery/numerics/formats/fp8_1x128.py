"""FP8 e4m3, one FP32 scale for 128 numbers of a token."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="fp8_1x128",
    title="FP8 e4m3, one FP32 scale for 128 numbers of a token",
    kind="float",
    element=get_element("e4m3fn"),
    scaling=Scaling(levels=(Level(share=(1, 128)),)),
    rates=("fp8", "bf16", "fp16"),
    aliases=("fp8blockactivations",),
    source="DeepSeek-V3 technical report, section 3.3",
)
