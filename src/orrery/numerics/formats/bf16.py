"""bfloat16: FP32's exponent in 16 bits."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element

FORMAT = Format(
    name="bf16",
    title="bfloat16: FP32's exponent in 16 bits",
    kind="float",
    element=get_element("bf16"),
    rates=("bf16", "fp16"),
    aliases=("bfloat16", "brain16"),
    source="Google Cloud TPU documentation",
)
