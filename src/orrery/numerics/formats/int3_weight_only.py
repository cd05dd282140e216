"""INT3 weights by groups of 128."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="int3_weight_only",
    title="INT3 weights by groups of 128",
    kind="integer",
    element_bits=3,
    block_elements=128,
    scale_bits=16,
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("int3", "3bit"),
    source="GPTQ, arXiv:2210.17323",
)
