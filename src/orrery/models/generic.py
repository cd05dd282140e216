"""A decoder of no known family: Llama's structure, with routed experts where the config counts them."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts")


def generic(c: Fields, name: str) -> Model:
    """Attention with the stated heads, a gated feed-forward part or experts from the first stated layer on."""
    s = sizes(c)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=c.flag("qkv_bias", default=bias), out_bias=bias, mlp_bias=c.flag("mlp_bias"))
    ffn = c.size("intermediate_size", "ffn_hidden_size")
    window = c.count("sliding_window")
    count = c.count(*EXPERTS)
    if count < 2:
        return decoder(c, name, recipe, kinds=[Kind(window=window)] * s.layers, ffn=ffn)
    width = c.size("moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_size", default=ffn)
    shared = c.count("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
    shared = shared or width * c.count("n_shared_experts", "num_shared_experts", "num_shared_expert")
    experts = moe(s.hidden, width, count, c.size(*CHOSEN, default=1), shared_ffn_size=shared)
    first = c.count("first_k_dense_replace")
    kinds = [Kind(window=window, is_moe=i >= first) for i in range(s.layers)]
    return decoder(c, name, recipe, kinds=kinds, experts=experts, ffn=ffn)
