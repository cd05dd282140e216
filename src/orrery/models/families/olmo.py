"""Ai2's OLMo: 1 (norms without weights), 2 and 3 (norms after each half, queries and keys normed whole), OLMoE."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes, windows
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe


def _dense(c: Fields, name: str) -> Model:
    kind = c.word("model_type")
    c = c.with_defaults(vocab_size=50304, intermediate_size=11008)
    s = sizes(c)
    kinds: list[Kind] = []
    if kind == "olmo3":
        default = ["full_attention" if (i + 1) % 4 == 0 else "sliding_attention" for i in range(s.layers)]
        kinds = [Kind(window=w) for w in windows(c, s.layers, c.count("sliding_window", default=4096), default)]
    bias = c.flag("attention_bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        norm_parameters=0 if kind == "olmo" else 1,
        qk_norm="" if kind == "olmo" else "whole",
    )
    return decoder(c, name, recipe, kinds=kinds)


def _experts(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=50304, intermediate_size=2048)
    s = sizes(c)
    bias = c.flag("attention_bias")
    experts = moe(
        s.hidden,
        c.size("intermediate_size"),
        c.size("num_experts", default=64),
        c.size("num_experts_per_tok", default=8),
    )
    recipe = Recipe(qkv_bias=bias, out_bias=bias, qk_norm="whole", default_context=4096)
    return decoder(c, name, recipe, kinds=[Kind(is_moe=True)] * s.layers, experts=experts)


BUILD = {"olmo": _dense, "olmo2": _dense, "olmo3": _dense, "olmoe": _experts}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
