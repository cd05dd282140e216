"""Llama 4: chunked rotary attention, every fourth layer full without positions; one expert a token and a shared one."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe

FULL_EVERY = 4
"""no_rope_layer_interval's default in transformers."""


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=202048,
        intermediate_size=8192,
        intermediate_size_mlp=16384,
        num_key_value_heads=8,
        head_dim=128,
        attention_chunk_size=8192,
    )
    s = sizes(c)
    # no_rope_layers lists 1 where positions are rotary (and attention chunked), 0 where not
    types = c.kinds(s.layers, ("chunked_attention", "full_attention"))
    rotary = c.sizes("no_rope_layers") or tuple(int(t == "chunked_attention") for t in types)
    rotary = rotary or tuple(int((i + 1) % FULL_EVERY != 0) for i in range(s.layers))
    rotary = c.per_layer(rotary, "no_rope_layers", s.layers)
    step = c.size("interleave_moe_layer_step", default=1)
    listed = c.sizes("moe_layers")
    sparse = set(listed) if listed else set(range(step - 1, s.layers, step))
    kinds = [
        Kind(
            chunk=c.count("attention_chunk_size") if rotary[i] else 0,
            rotary=bool(rotary[i]),
            is_moe=i in sparse,
        )
        for i in range(s.layers)
    ]
    width = c.size("intermediate_size")
    experts = moe(
        s.hidden,
        width,
        c.size("num_local_experts", default=16),
        c.size("num_experts_per_tok", default=1),
        shared_ffn_size=width,
    )
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias, default_context=131072)
    return decoder(c, name, recipe, kinds=kinds, experts=experts, ffn=c.size("intermediate_size_mlp"))


FAMILY = Family(model_types=("llama4_text", "llama4"), build=_build)
