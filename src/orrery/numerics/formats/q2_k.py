"""llama.cpp Q2_K: 2.625 bits an element with its scales."""

from orrery.numerics.format import Format

FORMAT = Format(
    name="q2_k",
    title="llama.cpp Q2_K: 2.625 bits an element with its scales",
    kind="lookup",
    stored_bits=2.625,
    rates=("fp16", "bf16"),
    weight_only=True,
    aliases=("ggufq2_k",),
    source="llama.cpp, table of quantisation types",
)
