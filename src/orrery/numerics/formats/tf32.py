"""TensorFloat-32: FP32 in memory, 19 bits in the multiplier."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element

FORMAT = Format(
    name="tf32",
    title="TensorFloat-32: FP32 in memory, 19 bits in the multiplier",
    kind="float",
    element=get_element("tf32"),
    stored_bits=32,
    rates=("tf32", "fp32"),
    source="NVIDIA A100 architecture whitepaper",
)
