"""DeepSeek-V4: one shared key/value head over a window and a compressed history, and several residual streams.

Layers compress by 4 with an indexer, by 128 without, or not at all. Hyper-connections mix ``hc_mult`` residual streams
before and after each half of a layer.
"""

from dataclasses import replace

from orrery.models.decoder import assemble
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, CompressedAttention, Linear, Model
from orrery.models.parts import Part, layer, moe, stack

CONNECTIONS = 2
"""Hyper-connections of a layer: around attention, and around its experts."""

INDEXED_RATIO = 4
"""Layers of this ratio carry the indexer (compressed_sparse_attention in transformers)."""

RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
DEFAULTS = {
    "vocab_size": 129280,
    "head_dim": 512,
    "q_lora_rank": 1024,
    "o_lora_rank": 1024,
    "o_groups": 8,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 512,
    "sliding_window": 128,
    "hc_mult": 4,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 2048,
}


def _linear(name: str, inputs: int, outputs: int, groups: int = 1, sharded: str = "") -> Linear:
    return Linear(
        name=name,
        in_features=inputs,
        out_features=outputs,
        role="attention",
        groups=groups,
        shard="column" if sharded == "column" else "row" if sharded == "row" else "replicated",
    )


def _attention(c: Fields, hidden: int, ratio: int) -> Part:
    heads, head = c.size("num_attention_heads"), c.size("head_dim")
    q_rank, o_rank, groups = c.size("q_lora_rank"), c.size("o_lora_rank"), c.size("o_groups")
    c.divide(heads * head, "num_attention_heads * head_dim", groups, "o_groups")
    linears = [
        _linear("qkv_a", hidden, q_rank + head),
        _linear("q_b", q_rank, heads * head, sharded="column"),
        _linear("out_a", heads * head, groups * o_rank, groups=groups, sharded="column"),
        _linear("out_b", groups * o_rank, hidden, sharded="row"),
    ]
    other, norms = q_rank + head + heads, q_rank + heads * head + head
    indexed = ratio == INDEXED_RATIO
    index_heads, index_head = (c.size("index_n_heads"), c.size("index_head_dim")) if indexed else (0, 0)
    if ratio:
        width = (2 if indexed else 1) * head
        linears.append(_linear("compress", hidden, 2 * width))
        other += ratio * width + head
    if indexed:
        linears.append(_linear("index_compress", hidden, 4 * index_head))
        linears.append(_linear("index_q", q_rank, index_heads * index_head))
        linears.append(
            Linear(
                name="index_weights", in_features=hidden, out_features=index_heads, shard="replicated", role="router"
            )
        )
        other += ratio * 2 * index_head + index_head
    return Part(
        linears=tuple(linears),
        mixer=CompressedAttention(
            num_heads=heads,
            head_size=head,
            window_tokens=c.size("sliding_window"),
            ratio=ratio,
            index_heads=index_heads,
            index_head_size=index_head,
            top_tokens=c.size("index_topk") if indexed else 0,
        ),
        other_parameters=other,
        norm_elements=norms,
    )


def _ratios(c: Fields, layers: int) -> tuple[int, ...]:
    if stated := c.sizes("compress_ratios"):
        return c.per_layer(stated, "compress_ratios", layers)
    if types := c.words("layer_types"):
        if unknown := set(types) - RATIOS.keys():
            raise c.wrong("layer_types", min(unknown), "one of " + ", ".join(RATIOS))
        return tuple(RATIOS[t] for t in c.per_layer(types, "layer_types", layers))
    return tuple(128 if i < 2 or i % 2 else 4 for i in range(layers))


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS)
    hidden, layers, streams = c.size("hidden_size"), c.size("num_hidden_layers"), c.size("hc_mult")
    width = c.size("moe_intermediate_size")
    mixing = (2 + streams) * streams  # rows of one hyper-connection's mixing matrix
    connections = CONNECTIONS * (mixing * streams * hidden + mixing + 3)

    c.kinds(layers, ("hash_moe", "moe"), key="mlp_layer_types")  # how tokens find their experts, which are the same

    def build(ratio: int) -> Block:
        feed = moe(
            hidden,
            width,
            c.size("n_routed_experts"),
            c.size("num_experts_per_tok"),
            shared_ffn_size=width * c.count("n_shared_experts"),
        )
        block = layer(
            f"compressed {ratio}" if ratio else "window",
            _attention(c, hidden, ratio),
            feed,
            hidden_size=hidden,
            other_parameters=connections,
        )
        return replace(block, connection_elements=CONNECTIONS * streams * hidden)

    blocks = stack(_ratios(c, layers), build)
    head = streams * streams * hidden + streams + 1
    count = c.count("num_nextn_predict_layers")
    drafts = count * (build(0).num_parameters + 2 * hidden * hidden + 3 * hidden + head)
    model = assemble(c, name, blocks, hidden, default_context=1048576, other_parameters=head, draft_parameters=drafts)
    return replace(model, experts_format="mxfp4" if c.word("expert_dtype") == "fp4" else "")


FAMILY = Family(model_types=("deepseek_v4", "deepseek_ref"), build=_build)
