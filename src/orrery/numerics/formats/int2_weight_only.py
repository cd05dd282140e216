"""INT2 weights by groups of 64."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="int2_weight_only",
    title="INT2 weights by groups of 64",
    kind="integer",
    element_bits=2,
    block_elements=64,
    scale_bits=16,
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("int2", "2bit"),
    source="weight-only quantisation at two bits",
)
