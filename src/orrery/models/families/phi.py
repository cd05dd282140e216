"""Microsoft's Phi: 1 to 2 (side by side, biases), 3 and 4 (Llama with fused weights), 3.5-MoE (16 experts)."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe


def _first(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=51200)
    recipe = Recipe(
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        is_gated=False,
        num_norms=1,
        norm_parameters=2,
        num_reduces=1,
        has_head_bias=True,
        qk_norm="head" if c.flag("qk_layernorm") else "",
    )
    return decoder(c, name, recipe, ffn=c.count("intermediate_size", "n_inner") or 4 * sizes(c).hidden)


def _third(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32064, intermediate_size=8192)
    s = sizes(c)
    # Windows as wide as the context (Phi-3-mini-4k: 2047 of 4096) are real; those of 128k models exceed it.
    window = c.count("sliding_window")
    return decoder(c, name, Recipe(default_context=4096), kinds=[Kind(window=window)] * s.layers)


def _experts(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32064, num_key_value_heads=8, intermediate_size=6400)
    s = sizes(c)
    bias = c.flag("attention_bias")
    experts = moe(
        s.hidden,
        c.size("intermediate_size"),
        c.size("num_local_experts", default=16),
        c.size("num_experts_per_tok", default=2),
    )
    recipe = Recipe(
        qkv_bias=bias, out_bias=bias, norm_parameters=2, has_head_bias=c.flag("lm_head_bias"), default_context=131072
    )
    kinds = [Kind(is_moe=True, window=c.count("sliding_window"))] * s.layers
    return decoder(c, name, recipe, kinds=kinds, experts=experts)


BUILD = {
    "phi": _first,
    "phi-msft": _first,
    "phi3": _third,
    "phi3_v": _third,
    "phi4mm": _third,
    "phi4_multimodal": _third,
    "phimoe": _experts,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
