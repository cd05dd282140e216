"""FP8 e4m3 with FP32 scales: 1x128 activations, 128x128 weights."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="fp8_block",
    title="FP8 e4m3 with FP32 scales: 1x128 activations, 128x128 weights",
    kind="float",
    element=get_element("e4m3fn"),
    scaling=Scaling(levels=(Level(share=(128, 128)),)),
    rates=("fp8", "bf16", "fp16"),
    aliases=("fp8blockscale", "fp8blockwise", "deepseekfp8"),
    source="DeepSeek-V3 technical report, section 3.3",
)
