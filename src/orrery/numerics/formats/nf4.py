"""NF4: 16 normal quantiles by groups of 64."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="nf4",
    title="NF4: 16 normal quantiles by groups of 64",
    kind="lookup",
    element_bits=4,
    block_elements=64,
    scale_bits=32,
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("bnb4bit", "bitsandbytes4bit", "bnbnf4"),
    source="QLoRA, arXiv:2305.14314",
)
