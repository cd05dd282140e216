"""INT4 weights, INT8 activations (W4A8)."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="int4_int8",
    title="INT4 weights, INT8 activations (W4A8)",
    kind="mixed",
    element_bits=4,
    block_elements=128,
    scale_bits=16,
    rates=("int8", "bf16", "fp16"),
    aliases=("w4a8", "int4awqw4a8"),
    source="QServe, arXiv:2405.04532",
)
