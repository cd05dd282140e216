"""Families with ordinary attention, dense first layers, and routed experts beside shared ones in the others.

Dots 1, EXAONE MoE, Hunyuan 3, Ling and Ring 2 (Bailing), Solar Open and Trinity (AFMoE) differ in norms, windows and
the names of their keys; a missing key means the default of the family's configuration class in transformers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orrery.models.decoder import Kind, Recipe, decoder, sizes, windows
from orrery.models.families.deepseek import draft, is_sparse, routed, with_drafts
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Facts of one family: defaults of missing keys, norms, and which layers see a window when no list says so."""

    defaults: Mapping[str, int]
    has_qk_norm: bool = True
    num_norms: int = 2
    full_every: int = 0  # 0: every layer attends in full unless layer_types says otherwise
    full_key: str = ""
    default_context: int = 131072
    counts_correction: bool = False  # the router's correction bias is a parameter
    drafts_densely: bool = False  # multi-token-prediction layers have no experts


STYLES = {
    "dots1": Style(
        defaults={"vocab_size": 152064, "intermediate_size": 10944, "moe_intermediate_size": 1408},
        default_context=2048,
    ),
    "exaone_moe": Style(
        defaults={
            "vocab_size": 102400,
            "num_key_value_heads": 32,
            "intermediate_size": 16384,
            "moe_intermediate_size": 1024,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
            "sliding_window": 4096,
        },
        full_every=4,
        full_key="sliding_window_pattern",
        default_context=2048,
        drafts_densely=True,
    ),
    "hy_v3": Style(
        defaults={
            "vocab_size": 120832,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 13312,
            "moe_intermediate_size": 1536,
            "num_experts": 192,
            "num_experts_per_tok": 8,
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
        },
    ),
    "solar_open": Style(
        defaults={
            "vocab_size": 196608,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "moe_intermediate_size": 1280,
            "n_routed_experts": 128,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
        },
        has_qk_norm=False,
    ),
    "bailing_moe": Style(defaults={}, has_qk_norm=False, default_context=32768),
    "bailing_moe_v2": Style(defaults={}, default_context=32768),
    "afmoe": Style(
        defaults={
            "vocab_size": 200192,
            "head_dim": 128,
            "intermediate_size": 6144,
            "moe_intermediate_size": 1408,
            "num_experts": 64,
            "num_experts_per_tok": 6,
            "num_shared_experts": 2,
            "sliding_window": 1024,
        },
        num_norms=4,
        full_every=4,
        full_key="global_attn_every_n_layers",
        default_context=16384,
        counts_correction=True,
    ),
}


def _kinds(c: Fields, style: Style, layers: int) -> list[Kind]:
    """Window and feed-forward part of each layer."""
    every = style.full_every
    if isinstance(pattern := c.data.get(style.full_key), str):  # such as LLLG
        every = pattern.find("G") + 1 or every
    elif style.full_key:
        every = c.size(style.full_key, default=every)
    default = ["sliding_attention" if every and (i + 1) % every else "full_attention" for i in range(layers)]
    seen = windows(c, layers, c.count("sliding_window"), default)
    return [Kind(window=w, is_moe=x) for w, x in zip(seen, is_sparse(c, layers), strict=True)]


def _build(c: Fields, name: str) -> Model:
    style = STYLES[c.word("model_type")]
    c = c.with_defaults(**style.defaults)
    c = c.with_defaults(first_k_dense_replace=c.count("num_dense_layers"))
    s = sizes(c)
    bias = c.flag("attention_bias", "use_qkv_bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=c.flag("attention_bias", "use_bias"),
        qk_norm="head" if c.flag("use_qk_norm", default=style.has_qk_norm) else "",
        num_norms=style.num_norms,
        default_context=style.default_context,
        gate="element" if c.word("model_type") == "afmoe" else "",
    )
    experts = routed(c, s.hidden)
    if style.counts_correction:
        experts = replace(experts, other_parameters=experts.other_parameters + c.size("num_experts"))
    model = decoder(c, name, recipe, kinds=_kinds(c, style, s.layers), experts=experts)
    count = c.count("num_nextn_predict_layers")
    if style.drafts_densely:
        return with_drafts(model, model.blocks[0], count)
    return replace(model, draft_parameters=draft(model.blocks[-1], s.hidden, count))


FAMILY = Family(model_types=tuple(STYLES), build=_build)
