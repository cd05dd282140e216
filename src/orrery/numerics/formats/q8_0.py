"""llama.cpp Q8_0: 8.5 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q8_0",
    title="llama.cpp Q8_0: 8.5 bits an element with its scales",
    kind="integer",
    element_bits=8.5,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq8_0",),
    source="llama.cpp, table of quantisation types",
)
