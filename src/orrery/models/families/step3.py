"""Step 3: multi-matrix factorised attention, and experts beside a shared one in all but the first and last layers.

Queries come out of a narrow latent that all heads share, and wide heads attend to one head of keys and values.
Source: Step-3 is Large yet Affordable, arXiv 2507.19427.
"""

from dataclasses import replace

from orrery.models.decoder import Sizes, assemble, sizes
from orrery.models.families.step import sparse_layers
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, layer, mlp, moe, stack

LAST_DENSE = 1
"""Layers at the end that have no experts when the config does not list those that have."""


def _factorised(s: Sizes, latent: int) -> Part:
    """The latent of queries, keys and values in one product on every device; the latent normed; queries by head."""
    plain = attention(s.hidden, s.heads, s.kv_heads, s.head)
    down = Linear(
        name="qkv_a",
        in_features=s.hidden,
        out_features=latent + 2 * s.kv_heads * s.head,
        shard="replicated",
        role="attention",
    )
    up = Linear(name="q_b", in_features=latent, out_features=s.heads * s.head, shard="column", role="attention")
    return replace(plain, linears=(down, up, plain.linears[1]), other_parameters=latent, norm_elements=latent)


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=128815,
        num_key_value_heads=c.data.get("num_attention_groups") or 1,
        head_dim=256,
        intermediate_size=18432,
        moe_intermediate_size=5120,
        share_expert_dim=5120,
        num_experts=c.data.get("moe_num_experts") or 48,
        num_experts_per_tok=c.data.get("moe_top_k") or 3,
        share_q_dim=2048,
        first_k_dense_replace=4,
        max_position_embeddings=c.data.get("max_position_embedding") or c.data.get("max_seq_len") or 65536,
    )
    s = sizes(c)
    sparse = sparse_layers(c, s.layers - LAST_DENSE)

    def build(is_moe: bool) -> Block:
        feed = (
            moe(
                s.hidden,
                c.size("moe_intermediate_size"),
                c.size("num_experts"),
                c.size("num_experts_per_tok"),
                shared_ffn_size=c.size("share_expert_dim"),
            )
            if is_moe
            else mlp(s.hidden, c.size("intermediate_size"))
        )
        mixer = _factorised(s, c.size("share_q_dim"))
        return layer("moe" if is_moe else "dense", mixer, feed, hidden_size=s.hidden)

    blocks = stack([i in sparse for i in range(s.layers)], build)
    return assemble(c, name, blocks, s.hidden, default_context=65536)


FAMILY = Family(model_types=("step3_text", "step3_vl"), build=_build)
