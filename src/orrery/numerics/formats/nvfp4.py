"""NVFP4: e2m1, one e4m3 scale for 16 and one FP32 scale a tensor."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="nvfp4",
    title="NVFP4: e2m1, one e4m3 scale for 16 and one FP32 scale a tensor",
    kind="float",
    element=get_element("e2m1"),
    scaling=Scaling(levels=(Level(share=(1, 16), scale=get_element("e4m3fn")), Level(share="tensor"))),
    rates=("nvfp4", "fp4", "fp8", "bf16"),
    aliases=("fp4", "e2m1", "modeloptfp4"),
    source="NVIDIA: Introducing NVFP4",
)
