"""llama.cpp Q4_1: 5 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q4_1",
    title="llama.cpp Q4_1: 5 bits an element with its scales",
    kind="integer",
    element_bits=5.0,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq4_1",),
    source="llama.cpp, table of quantisation types",
)
