"""INT8 weights, 16-bit activations."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="int8_weight_only",
    title="INT8 weights, 16-bit activations",
    kind="integer",
    element_bits=8,
    rates=("bf16", "fp16"),
    weight_only=True,
    aliases=("w8a16", "int8wo", "bnb8bit", "bitsandbytesint8", "llmint8"),
    source="TensorRT-LLM documentation, weight-only quantisation",
)
