"""llama.cpp Q4_K_S: 4.58 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q4_k_s",
    title="llama.cpp Q4_K_S: 4.58 bits an element with its scales",
    kind="lookup",
    stored_bits=4.58,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq4_k_s",),
    source="llama.cpp, table of quantisation types",
)
