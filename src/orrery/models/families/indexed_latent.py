"""Latent attention with an indexer and something more: Hunyuan 4, GLM-5-Next, Mistral Large 4.

Hunyuan 4 gates what its sinks leave of attention and mixes residual streams before each half of a layer; GLM-5-Next
attends so in every fourth layer, over index keys that are pooled, the others are delta attention, and mixes streams as
DeepSeek-V4 does; Mistral Large 4 projects queries directly, and every fourth layer has no positions. Drafting layers
have one residual stream. Source: transformers 5.24.0, each family's configuration and modelling files; vLLM
(vllm/models/hy_v4 and glm5next).
"""

from dataclasses import replace

from orrery.models.decoder import assemble
from orrery.models.families.deepseek import is_sparse, routed, with_drafts
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.latent import latent_attention
from orrery.models.model import Block, LatentAttention, Linear, Model
from orrery.models.parts import Part, layer, mlp, stack
from orrery.models.recurrent import kimi_delta

HALVES = 2
"""Places of a layer where residual streams are mixed: before attention and before the feed-forward part."""

HUNYUAN = {
    "vocab_size": 120832,
    "intermediate_size": 6912,
    "moe_intermediate_size": 768,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 16,
    "hc_mult": 4,
    "first_k_dense_replace": 1,
}
HUNYUAN_VL = HUNYUAN | {
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "q_lora_rank": 2048,
    "index_n_heads": 32,
}
GLM = {
    "vocab_size": 154880,
    "intermediate_size": 12288,
    "moe_intermediate_size": 2048,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 256,
    "qk_rope_head_dim": 0,
    "v_head_dim": 256,
    "n_routed_experts": 288,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "index_kpool": 16,
    "hc_mult": 4,
    "linear_num_heads": 64,
    "linear_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "first_k_dense_replace": 3,
}
MISTRAL = {
    "vocab_size": 204800,
    "intermediate_size": 24576,
    "moe_intermediate_size": 6144,
    "q_lora_rank": 0,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "first_k_dense_replace": 1,
}
INDEXED = ("indexed_attention", "deepseek_sparse_attention", "full_attention")
"""Words for attention over what an indexer picks."""

EVERY = 4
"""One in so many layers is of the rarer kind."""


NOTE = (
    "streams are mixed as fast as DeepSeek-V4's, which also balances a small matrix; its own kernels were not measured"
)


def _mixing(hidden: int, streams: int, rows: int, scales: int) -> int:
    """Parameters of a layer's mixing of streams: a product of all of them, a shift a row, a few scales."""
    return HALVES * (rows * streams * hidden + rows + scales)


def _feed(c: Fields, hidden: int, is_moe: bool) -> Part:
    return routed(c, hidden) if is_moe else mlp(hidden, c.size("intermediate_size"))


def _indexers(c: Fields, layers: int, default: list[bool]) -> list[bool]:
    """Which layers have an indexer of their own; the others take over the choice of the last that has."""
    types = c.words("indexer_types")
    return [t == "full" for t in c.per_layer(types, "indexer_types", layers)] if types else default


def _hunyuan(c: Fields, name: str) -> Model:
    c = c.with_defaults(**(HUNYUAN_VL if c.word("model_type") == "hy_v4_vl_text" else HUNYUAN))
    hidden, heads, layers = c.size("hidden_size"), c.size("num_attention_heads"), c.size("num_hidden_layers")
    streams, gate = c.size("hc_mult"), heads * c.size("v_head_dim")
    mixing = _mixing(hidden, streams, 2 * streams, 2)

    def build(kind: tuple[bool, bool], has_streams: bool = True) -> Block:
        is_moe, indexed = kind
        part = latent_attention(c, hidden, heads, indexer=indexed, gate=gate)
        other = heads + mixing * has_streams  # a sink a head
        feed = _feed(c, hidden, is_moe)
        block = layer("moe" if is_moe else "dense", part, feed, hidden_size=hidden, other_parameters=other)
        return replace(block, connection_elements=HALVES * streams * hidden * has_streams)

    c.kinds(layers, INDEXED)
    indexed = _indexers(c, layers, [i == 0 or i % EVERY == 1 for i in range(layers)])
    blocks = stack(zip(is_sparse(c, layers), indexed, strict=True), build)
    head = streams * streams * hidden + streams + 1
    model = assemble(c, name, blocks, hidden, default_context=262144, other_parameters=head)
    model = replace(model, published=(*model.published, ("layers", NOTE)))
    return with_drafts(model, build((True, True), False), c.count("num_nextn_predict_layers"))


def _pooled(c: Fields, hidden: int, heads: int, indexed: bool) -> Part:
    """Latent attention whose indexer pools the keys of a few tokens by a gate and by their places."""
    part = latent_attention(c, hidden, heads, indexer=indexed)
    if not indexed:
        return part
    head, pool = c.size("index_head_dim"), c.size("index_kpool")
    assert isinstance(part.mixer, LatentAttention)
    gate = Linear(name="index_gate", in_features=hidden, out_features=head, shard="replicated", role="router")
    return replace(
        part,
        linears=(*part.linears, gate),
        mixer=replace(part.mixer, index_ratio=pool),
        other_parameters=part.other_parameters + head * pool,
    )


def _delta(c: Fields, hidden: int) -> Part:
    """Delta attention, of the sizes in a table of their own or beside the others."""
    table = c.table("linear_attn_config") or Fields({}, c.where)
    heads = table.size("num_heads", default=c.size("linear_num_heads"))
    head = table.size("head_dim", default=c.size("linear_head_dim"))
    kernel = table.size("short_conv_kernel_size", default=c.size("linear_conv_kernel_dim"))
    return kimi_delta(hidden, heads, head, kernel)


def _glm(c: Fields, name: str) -> Model:
    c = c.with_defaults(**GLM)
    hidden, heads, layers = c.size("hidden_size"), c.size("num_attention_heads"), c.size("num_hidden_layers")
    streams = c.size("hc_mult")
    mixing = _mixing(hidden, streams, (2 + streams) * streams, 3)

    def build(kind: tuple[bool, bool, bool], has_streams: bool = True) -> Block:
        is_full, is_moe, indexed = kind
        part = _pooled(c, hidden, heads, indexed) if is_full else _delta(c, hidden)
        label, feed = ("full " if is_full else "delta ") + ("moe" if is_moe else "dense"), _feed(c, hidden, is_moe)
        block = layer(label, part, feed, hidden_size=hidden, other_parameters=mixing * has_streams)
        return replace(block, connection_elements=HALVES * streams * hidden * has_streams)

    types = c.kinds(layers, ("linear_attention", *INDEXED))
    full = [t in INDEXED for t in types] or [i % EVERY == EVERY - 1 for i in range(layers)]
    indexed = [a and b for a, b in zip(full, _indexers(c, layers, [True] * layers), strict=True)]
    blocks = stack(zip(full, is_sparse(c, layers), indexed, strict=True), build)
    model = assemble(c, name, blocks, hidden, default_context=1048576)
    return with_drafts(model, build((True, True, True), False), c.count("num_nextn_predict_layers"))


def _without_positions(part: Part, rope: int, hidden: int, heads: int) -> Part:
    """The same attention without the rotated share of keys and queries: all of a head is compressed."""
    mixer = part.mixer
    assert isinstance(mixer, LatentAttention)
    grown = {
        "kv_a": {"out_features": mixer.kv_lora_rank},
        "kv_b": {"out_features": heads * (mixer.nope_head_size + rope + mixer.value_head_size)},
    }
    return replace(
        part,
        linears=tuple(replace(x, **grown.get(x.name, {})) for x in part.linears),
        mixer=replace(mixer, nope_head_size=mixer.nope_head_size + rope, rope_head_size=0),
    )


def _mistral(c: Fields, name: str) -> Model:
    c = c.with_defaults(**MISTRAL)
    hidden, heads, layers = c.size("hidden_size"), c.size("num_attention_heads"), c.size("num_hidden_layers")
    rope = c.size("qk_rope_head_dim")
    scales = 2 * heads + 2 * hidden + 2 * c.size("index_n_heads")  # of scores, of the indexer's input and scores

    def build(kind: tuple[bool, bool]) -> Block:
        is_moe, turns = kind
        part = latent_attention(c, hidden, heads)
        part = part if turns else _without_positions(part, rope, hidden, heads)
        feed = _feed(c, hidden, is_moe)
        label = ("moe" if is_moe else "dense") + ("" if turns else " without positions")
        return layer(label, part, feed, hidden_size=hidden, other_parameters=scales)

    c.kinds(layers, INDEXED)
    listed = c.sizes("no_rope_layers")  # 1 where a layer has positions
    turns = [bool(x) for x in listed] if listed else [(i + 1) % EVERY != 0 for i in range(layers)]
    blocks = stack(zip(is_sparse(c, layers), c.per_layer(tuple(turns), "no_rope_layers", layers), strict=True), build)
    return assemble(c, name, blocks, hidden, default_context=1048576, other_parameters=rope // 2)


BUILD = {
    "hy_v4": _hunyuan,
    "hy_v4_vl_text": _hunyuan,
    "glm5_next_text": _glm,
    "mistral_large4_text": _mistral,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
