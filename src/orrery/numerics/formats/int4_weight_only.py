"""INT4 weights by groups of 128, 16-bit activations."""

from orrery.numerics.format import Format
from orrery.numerics.names import get_element
from orrery.numerics.scaling import Level, Scaling

FORMAT = Format(
    name="int4_weight_only",
    title="INT4 weights by groups of 128, 16-bit activations",
    kind="integer",
    element=get_element("int4"),
    scaling=Scaling(levels=(Level(share=(1, 128), scale=get_element("fp16")),)),
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("int4", "w4a16", "int4wo", "awq", "gptq", "int4awq", "int4gptq", "4bit", "q4", "autoawq", "marlin"),
    source="AWQ, arXiv:2306.00978",
)
