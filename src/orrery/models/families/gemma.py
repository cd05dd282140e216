"""Gemma 1 to 4: tied embeddings, sandwich norms from Gemma 2, windows in most layers; Gemma 4 also with experts."""

from typing import Any

from orrery.models.decoder import Kind, Recipe, Sizes, assemble, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, layer, mlp, moe, stack

SLIDING, FULL = "sliding_attention", "full_attention"


def types_of(c: Fields, layers: int, every: int) -> tuple[str, ...]:
    """The kind of each layer: stated, or a full one every so many."""
    types = c.kinds(layers, (SLIDING, FULL))
    return types or tuple(FULL if (i + 1) % every == 0 else SLIDING for i in range(layers))


def _first(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=256000, head_dim=256, intermediate_size=24576)
    bias = c.flag("attention_bias")
    return decoder(c, name, Recipe(qkv_bias=bias, out_bias=bias, is_tied=True, default_context=8192))


def _second(c: Fields, name: str) -> Model:
    """Gemma 2 and 3: norms before and after each half; Gemma 3 norms queries and keys by head."""
    is_third = c.word("model_type").startswith("gemma3")
    c = c.with_defaults(
        vocab_size=262208 if is_third else 256000,
        head_dim=256,
        num_attention_heads=8,
        num_key_value_heads=4,
        intermediate_size=9216,
    )
    s = sizes(c)
    every = c.size("sliding_window_pattern", default=6) if is_third else 2
    window = c.count("sliding_window", default=4096)
    kinds = [Kind(window=window if t == SLIDING else 0) for t in types_of(c, s.layers, every)]
    bias = c.flag("attention_bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        is_tied=True,
        num_norms=4,
        qk_norm="head" if is_third else "",
        default_context=131072 if is_third else 8192,
    )
    return decoder(c, name, recipe, kinds=kinds)


def _attention(c: Fields, s: Sizes, *, is_full: bool, reuses: bool) -> Part:
    """Full layers have their own head size, fewer key/value heads, and may use keys as values."""
    same = c.flag("attention_k_eq_v") and is_full
    few = c.size("num_global_key_value_heads", default=s.kv_heads) if same else s.kv_heads
    bias = c.flag("attention_bias")
    return attention(
        s.hidden,
        s.heads,
        few,
        c.size("global_head_dim", default=512) if is_full else s.head,
        qk_norm="head",
        window=0 if is_full else c.size("sliding_window", default=512),
        owns_cache=not reuses,
        shares_projection=same,
        qkv_bias=bias,
        out_bias=bias,
    )


def per_layer_input(hidden: int, width: int) -> Part:
    """The gate and projection of the per-layer embedding that Gemma 3n and 4 feed every layer, and its norm."""
    if not width:
        return Part()
    return Part(
        linears=(
            Linear(name="input_gate", in_features=hidden, out_features=width, shard="replicated", role="other"),
            Linear(name="input_out", in_features=width, out_features=hidden, shard="replicated", role="other"),
        ),
        other_parameters=hidden,
        norm_elements=hidden,
        activation_elements=width,
    )


def per_layer_embeddings(c: Fields, hidden: int, width: int, layers: int) -> tuple[int, int]:
    """(embedding rows for all layers, the projection that makes more of them from the token embedding, with norm)."""
    if not width:
        return 0, 0
    return c.size("vocab_size_per_layer_input", default=262144) * layers * width, hidden * layers * width + width


def _of_full_layers(c: Fields) -> dict[str, Any]:
    """Sizes of full layers where the config lists what differs layer by layer (per_layer_config), under their own
    names."""
    if (listed := c.table("per_layer_config")) is None:
        return {}
    found = [one for key in listed.data if (one := listed.table(key)) is not None]
    if not found or any(one.data != found[0].data or one.data.keys() - OWN_NAMES.keys() for one in found):
        raise c.wrong("per_layer_config", dict(listed.data), "the same " + " and ".join(OWN_NAMES) + " for full layers")
    return {OWN_NAMES[key]: value for key, value in found[0].data.items()}


OWN_NAMES = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}


def _fourth(c: Fields, name: str) -> Model:
    if c.word("model_type") == "gemma4_unified_text":
        c = c.with_defaults(hidden_size_per_layer_input=0)
    c = c.with_defaults(**_of_full_layers(c))
    c = c.with_defaults(
        vocab_size=262144, head_dim=256, num_attention_heads=8, num_key_value_heads=4, intermediate_size=9216
    )
    s = sizes(c)
    width = c.count("hidden_size_per_layer_input", default=256)
    shared_from = s.layers - c.count("num_kv_shared_layers")
    types = (*types_of(c, s.layers, 6)[:-1], FULL)
    has_experts, doubles = c.flag("enable_moe_block"), c.flag("use_double_wide_mlp")

    def build(kind: tuple[bool, bool]) -> Block:
        is_full, reuses = kind
        ffn = c.size("intermediate_size") * (2 if doubles and reuses else 1)
        parts = [_attention(c, s, is_full=is_full, reuses=reuses), mlp(s.hidden, ffn), per_layer_input(s.hidden, width)]
        norms, other = 4, 0
        if has_experts:
            count = c.size("num_experts")
            parts.append(moe(s.hidden, c.size("moe_intermediate_size"), count, c.size("top_k_experts")))
            norms, other = 7, s.hidden + count  # the router scales its input and every expert's output
        label = ("full" if is_full else "sliding") + (" moe" if has_experts else " dense") + reuses * " reusing"
        return layer(label, *parts, hidden_size=s.hidden, num_norms=norms, other_parameters=other)

    kinds = [(t == FULL, i >= shared_from) for i, t in enumerate(types)]
    rows, projection = per_layer_embeddings(c, s.hidden, width, s.layers)
    return assemble(
        c,
        name,
        stack(kinds, build),
        s.hidden,
        is_tied=True,
        default_context=131072,
        other_parameters=projection,
        extra_embedding=rows,
    )


BUILD = {
    "gemma": _first,
    "gemma2": _second,
    "gemma3": _second,
    "gemma3_text": _second,
    "gemma4_text": _fourth,
    "gemma4": _fourth,
    "gemma4_unified_text": _fourth,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
