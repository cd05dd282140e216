"""llama.cpp Q3_K_M: 3.91 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q3_k_m",
    title="llama.cpp Q3_K_M: 3.91 bits an element with its scales",
    kind="lookup",
    stored_bits=3.91,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq3_k_m",),
    source="llama.cpp, table of quantisation types",
)
