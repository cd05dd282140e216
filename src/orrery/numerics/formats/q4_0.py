"""llama.cpp Q4_0: 4.5 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q4_0",
    title="llama.cpp Q4_0: 4.5 bits an element with its scales",
    kind="integer",
    element_bits=4.5,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq4_0",),
    source="llama.cpp, table of quantisation types",
)
