"""INT8 weights, 16-bit activations."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int8_weight_only",
    title="INT8 weights, 16-bit activations",
    kind="integer",
    element=get_element("int8sym"),
    scaling=Scaling(levels=(Level(share="row"),)),
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("w8a16", "int8wo", "bnb8bit", "bitsandbytesint8", "llmint8"),
    source="TensorRT-LLM documentation, weight-only quantisation",
)
