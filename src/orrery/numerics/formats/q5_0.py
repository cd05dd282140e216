"""llama.cpp Q5_0: 5.5 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q5_0",
    title="llama.cpp Q5_0: 5.5 bits an element with its scales",
    kind="integer",
    element_bits=5.5,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq5_0",),
    source="llama.cpp, table of quantisation types",
)
