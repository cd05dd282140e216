"""llama.cpp Q4_K_M: 4.85 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q4_k_m",
    title="llama.cpp Q4_K_M: 4.85 bits an element with its scales",
    kind="lookup",
    stored_bits=4.85,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq4_k_m",),
    source="llama.cpp, table of quantisation types",
)
