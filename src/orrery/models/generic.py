"""A decoder of no known family: Llama's structure, with routed experts where the config counts them."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import Part, beside, latent_projections, moe

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts")
WIDE = ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
SHARED = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")


def experts_of(c: Fields, hidden: int, width: int, latent: int = 0) -> Part:
    """Routed experts of ``width`` and the shared ones, under any of the usual keys; they work in ``latent`` features
    where it is not 0."""
    shared = c.count(*WIDE) or width * c.count(*SHARED)
    count, chosen = c.count(*EXPERTS), c.size(*CHOSEN, default=1)
    routed = moe(hidden, width, count, chosen, shared_ffn_size=shared, latent_size=latent)
    return beside(routed, latent_projections(hidden, latent, num_norms=2)) if latent else routed


def generic(c: Fields, name: str) -> Model:
    """Attention with the stated heads, a gated feed-forward part or experts from the first stated layer on."""
    s = sizes(c)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=c.flag("qkv_bias", default=bias), out_bias=bias, mlp_bias=c.flag("mlp_bias"))
    ffn = c.size("intermediate_size", "ffn_hidden_size")
    window = c.count("sliding_window")
    if c.count(*EXPERTS) < 2:
        return decoder(c, name, recipe, kinds=[Kind(window=window)] * s.layers, ffn=ffn)
    width = c.size("moe_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_size", default=ffn)
    first = c.count("first_k_dense_replace")
    kinds = [Kind(window=window, is_moe=i >= first) for i in range(s.layers)]
    return decoder(c, name, recipe, kinds=kinds, experts=experts_of(c, s.hidden, width), ffn=ffn)
