"""LongCat-Flash: every layer is two of latent attention and a dense part, with experts on a shortcut around the second.

The router chooses among experts and ``zero_expert_num`` that return their input; a token passes those it would on
average, ``moe_topk`` times the share of experts that compute.
"""

from dataclasses import replace

from orrery.models.decoder import assemble
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.latent import latent_attention
from orrery.models.model import Block, Model
from orrery.models.parts import Part, layer, mlp, moe, stack

DEFAULTS = {
    "vocab_size": 131072,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "ffn_hidden_size": 12288,
    "expert_ffn_hidden_size": 2048,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
}


def _experts(c: Fields, hidden: int) -> Part:
    count, idle = c.size("n_routed_experts"), c.count("zero_expert_num")
    per_token = max(1, round(c.size("moe_topk") * count / (count + idle)))
    part = moe(hidden, c.size("expert_ffn_hidden_size"), count, per_token, router_bias=c.flag("router_bias"))
    router, *others = part.linears
    return replace(part, linears=(replace(router, out_features=count + idle), *others))


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS)
    hidden, heads = c.size("hidden_size"), c.size("num_attention_heads")

    def build(has_experts: bool) -> Block:
        dense = mlp(hidden, c.size("ffn_hidden_size"))
        parts = (_experts(c, hidden), dense) if has_experts else (dense,)
        label = "shortcut moe" if has_experts else "dense"
        return layer(label, latent_attention(c, hidden, heads), *parts, hidden_size=hidden)

    layers = c.size("num_layers", "num_hidden_layers")
    return assemble(c, name, stack([True, False] * layers, build), hidden, default_context=131072)


FAMILY = Family(model_types=("longcat_flash",), build=_build)
