"""llama.cpp Q5_K_M: 5.69 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q5_k_m",
    title="llama.cpp Q5_K_M: 5.69 bits an element with its scales",
    kind="lookup",
    stored_bits=5.69,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq5_k_m",),
    source="llama.cpp, table of quantisation types",
)
