"""Kimi-Linear and Kimi-K3: delta attention with a full latent-attention layer every fourth, shared and routed experts.

K3 lets its experts work in a narrower space, gates its latent attention and mixes residuals of ``attn_res_block_size``
layers; transformers has Kimi-Linear only, so K3's few small tensors (residual mixing) are left out.
"""

from orrery.models.decoder import HYBRID, assemble
from orrery.models.families.deepseek import is_sparse
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.latent import latent_attention
from orrery.models.model import Block, Model
from orrery.models.parts import Part, latent_projections, layer, mlp, moe, stack
from orrery.models.recurrent import kimi_delta

DEFAULTS = {
    "vocab_size": 163840,
    "kv_lora_rank": 512,
    "q_lora_rank": 0,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "moe_intermediate_size": 1024,
    "first_k_dense_replace": 1,
}


def _full_layers(c: Fields, layers: int) -> list[bool]:
    """Which layers attend in full: layer_types, or linear_attn_config's list that counts from one."""
    if types := c.kinds(layers, HYBRID):
        return [t == HYBRID[0] for t in types]
    table = c.table("linear_attn_config")
    listed = set(table.sizes("full_attn_layers")) if table else set[int]()
    delta = set(table.sizes("kda_layers")) if table else set[int]()
    if not listed and not delta:
        return [(i + 1) % 4 == 0 or i == layers - 1 for i in range(layers)]
    return [i + 1 in listed or (bool(delta) and i + 1 not in delta and not _cut(c)) for i in range(layers)]


def _cut(c: Fields) -> bool:
    """Whether the lists of layers do not cover all of them."""
    table = c.table("linear_attn_config")
    if table is None:
        return False
    return len(table.sizes("full_attn_layers")) + len(table.sizes("kda_layers")) < c.size("num_hidden_layers")


def _experts(c: Fields, hidden: int) -> tuple[Part, ...]:
    width, latent = c.size("moe_intermediate_size"), c.count("routed_expert_hidden_size")
    shared = width * c.count("num_shared_experts", "n_shared_experts", default=1)
    routed = moe(
        hidden,
        width,
        c.size("num_experts", "n_routed_experts", "num_local_experts", default=256),
        c.size("num_experts_per_token", "num_experts_per_tok", default=8),
        shared_ffn_size=shared,
        latent_size=latent,
    )
    if not latent:
        return (routed,)
    return routed, latent_projections(hidden, latent, num_norms=1 if c.flag("latent_moe_use_norm") else 0)


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS)
    hidden, layers, heads = c.size("hidden_size"), c.size("num_hidden_layers"), c.size("num_attention_heads")
    table = c.table("linear_attn_config") or Fields({}, c.where)
    delta_heads = table.size("num_heads", default=c.size("linear_num_heads", default=heads))
    delta_head = table.size("head_dim", default=c.size("linear_head_dim", default=128))
    kernel = table.size("short_conv_kernel_size", default=c.size("linear_conv_kernel_dim", default=4))
    gate = heads * c.size("v_head_dim") if c.flag("mla_use_output_gate") else 0

    def build(kind: tuple[bool, bool]) -> Block:
        is_full, is_moe = kind
        mixer = (
            latent_attention(c, hidden, heads, gate=gate)
            if is_full
            else kimi_delta(hidden, delta_heads, delta_head, kernel, has_full_gate=table.flag("use_full_rank_gate"))
        )
        feed = _experts(c, hidden) if is_moe else (mlp(hidden, c.size("intermediate_size")),)
        label = ("full " if is_full else "delta ") + ("moe" if is_moe else "dense")
        return layer(label, mixer, *feed, hidden_size=hidden)

    kinds = list(zip(_full_layers(c, layers), is_sparse(c, layers), strict=True))
    blocks = stack(kinds, build)
    drafts = c.count("num_nextn_predict_layers")
    each = build(kinds[-1]).num_parameters + 2 * hidden * hidden + 3 * hidden
    return assemble(c, name, blocks, hidden, default_context=1048576, draft_parameters=drafts * each)


FAMILY = Family(model_types=("kimi_linear", "kimi_k3"), build=_build)
