"""llama.cpp Q6_K: 6.5625 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q6_k",
    title="llama.cpp Q6_K: 6.5625 bits an element with its scales",
    kind="lookup",
    stored_bits=6.5625,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq6_k",),
    source="llama.cpp, table of quantisation types",
)
