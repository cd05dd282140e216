"""INT4 weights by groups of 128, 16-bit activations."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="int4_weight_only",
    title="INT4 weights by groups of 128, 16-bit activations",
    kind="integer",
    element_bits=4,
    block_elements=128,
    scale_bits=16,
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("int4", "w4a16", "int4wo", "awq", "gptq", "int4awq", "int4gptq", "4bit", "q4", "autoawq", "marlin"),
    source="AWQ, arXiv:2306.00978",
)
