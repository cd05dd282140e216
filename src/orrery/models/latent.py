"""DeepSeek's latent attention as a part of a layer, with the lightning indexer that V3.2 and GLM-5 add."""

from orrery.models.fields import Fields
from orrery.models.model import LatentAttention, Linear
from orrery.models.parts import Part


def latent_attention(c: Fields, hidden: int, heads: int, *, indexer: bool | None = None, gate: int = 0) -> Part:
    """Down-projections of q and kv in one product, two up-projections, output; ``indexer``: whether this layer has it.

    ``gate`` is the width of an output gate projected from the hidden state (Kimi-K3), 0 where there is none.
    """
    q_rank, kv_rank = c.count("q_lora_rank"), c.size("kv_lora_rank")
    nope, rope = c.size("qk_nope_head_dim"), c.count("qk_rope_head_dim")
    value, bias = c.size("v_head_dim"), c.flag("attention_bias")
    top = c.count("index_topk")
    indexed = bool(top) if indexer is None else indexer
    queries = heads * (nope + rope)
    linears = [
        Linear(
            name="qkv_a" if q_rank else "kv_a",
            in_features=hidden,
            out_features=q_rank + kv_rank + rope,
            shard="replicated",
            role="attention",
            has_bias=bias,
        ),
        Linear(
            name="q_b" if q_rank else "q",
            in_features=q_rank or hidden,
            out_features=queries,
            shard="column",
            role="attention",
        ),
        Linear(name="kv_b", in_features=kv_rank, out_features=heads * (nope + value), shard="column", role="attention"),
        Linear(
            name="out", in_features=heads * value, out_features=hidden, shard="row", role="attention", has_bias=bias
        ),
    ]
    if gate:
        linears.append(Linear(name="gate", in_features=hidden, out_features=gate, shard="column", role="attention"))
    norms = q_rank + kv_rank
    index_heads, index_head = (c.size("index_n_heads"), c.size("index_head_dim")) if indexed else (0, 0)
    if indexed:
        linears += _indexer(hidden, q_rank or hidden, index_heads, index_head)
    return Part(
        linears=tuple(linears),
        mixer=LatentAttention(
            num_heads=heads,
            q_lora_rank=q_rank,
            kv_lora_rank=kv_rank,
            nope_head_size=nope,
            rope_head_size=rope,
            value_head_size=value,
            index_heads=index_heads,
            index_head_size=index_head,
            top_tokens=top,
        ),
        other_parameters=norms + 2 * index_head,
        norm_elements=norms + index_head,
    )


def _indexer(hidden: int, q_in: int, heads: int, head: int) -> list[Linear]:
    """The indexer's queries from the q latent, one shared key and a weight a head from the hidden state."""
    return [
        Linear(name="index_q", in_features=q_in, out_features=heads * head, shard="replicated", role="attention"),
        Linear(name="index_k", in_features=hidden, out_features=head, shard="replicated", role="attention"),
        Linear(name="index_weights", in_features=hidden, out_features=heads, shard="replicated", role="router"),
    ]
