"""MiniMax: lightning attention with a full layer now and then (Text-01, M1), all full (M2), block-sparse (M3)."""

from dataclasses import replace

from orrery.models.decoder import HYBRID, Kind, Recipe, assemble, decoder, sizes
from orrery.models.families.deepseek import is_sparse
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import Part, attention, layer, mlp, moe, stack, with_block_indexer
from orrery.models.recurrent import lightning

BIASLESS_ROUTER = {"num_local_experts": 8, "num_experts_per_tok": 2}


def _first(c: Fields, name: str) -> Model:
    """Text-01 and M1: full attention where attn_type_list (or layer_types) says so, every second layer by default."""
    c = c.with_defaults(vocab_size=32000, num_key_value_heads=8, **BIASLESS_ROUTER)
    s = sizes(c)
    types = c.kinds(s.layers, HYBRID)
    listed = c.sizes("attn_type_list")
    if types:
        full = [t == HYBRID[0] for t in types]
    elif listed:
        full = [bool(t) for t in c.per_layer(listed, "attn_type_list", s.layers)]
    else:
        full = [(i + 1) % 2 == 0 for i in range(s.layers)]

    def build(is_full: bool) -> Block:
        mixer = attention(s.hidden, s.heads, s.kv_heads, s.head) if is_full else lightning(s.hidden, s.heads, s.head)
        feed = moe(s.hidden, c.size("intermediate_size"), c.size("num_local_experts"), c.size("num_experts_per_tok"))
        return layer("full moe" if is_full else "lightning moe", mixer, feed, hidden_size=s.hidden)

    return assemble(c, name, stack(full, build), s.hidden, default_context=10240000)


def _second(c: Fields, name: str) -> Model:
    """M2 to M2.7: full attention, queries and keys normed over all heads, no shared expert."""
    c = c.with_defaults(
        vocab_size=200064,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=1536,
        num_local_experts=256,
        num_experts_per_tok=8,
    )
    s = sizes(c)
    experts = moe(s.hidden, c.size("intermediate_size"), c.size("num_local_experts"), c.size("num_experts_per_tok"))
    model = decoder(
        c,
        name,
        Recipe(qk_norm="whole" if c.flag("use_qk_norm", default=True) else "", default_context=196608),
        kinds=[Kind(is_moe=True)] * s.layers,
        experts=experts,
    )
    count = c.count("num_mtp_modules") * c.count("mtp_transformer_layers", default=1) if c.flag("use_mtp") else 0
    each = replace(model.blocks[0], count=1).num_parameters + 2 * s.hidden * s.hidden + 3 * s.hidden
    return replace(model, draft_parameters=count * each)


def _sparse_attention(c: Fields, part: Part, hidden: int) -> Part:
    """M3's indexer and the tokens that it picks, in blocks."""
    table = c.table("sparse_attention_config") or Fields({}, c.where)
    heads = table.size("sparse_num_index_heads", default=c.size("index_n_heads", default=4))
    head = table.size("sparse_index_dim", default=c.size("index_head_dim", default=128))
    top = table.size("sparse_topk_blocks", default=c.size("index_topk_blocks", default=16))
    block = table.size("sparse_block_size", default=c.size("index_block_size", default=128))
    return with_block_indexer(part, hidden, heads, head, top * block)


def _third(c: Fields, name: str) -> Model:
    """M3: dense layers first, then block-sparse attention, shared and routed experts; norms by head."""
    c = c.with_defaults(
        vocab_size=200064,
        num_key_value_heads=4,
        head_dim=128,
        intermediate_size=3072,
        dense_intermediate_size=12288,
        shared_intermediate_size=3072,
        num_local_experts=128,
        num_experts_per_tok=4,
    )
    s = sizes(c)
    table = c.table("sparse_attention_config")
    listed = table.sizes("sparse_attention_freq") if table else ()
    types = c.kinds(s.layers, ("full_attention", "minimax_m3_sparse"))
    if types:
        sparse = tuple(t == "minimax_m3_sparse" for t in types)
    else:
        sparse = c.per_layer(tuple(map(bool, listed)) or (False,) * s.layers, "sparse_attention_freq", s.layers)

    def build(kind: tuple[bool, bool]) -> Block:
        has_indexer, is_moe = kind
        mixer = attention(s.hidden, s.heads, s.kv_heads, s.head, qk_norm="head")
        if has_indexer:
            mixer = _sparse_attention(c, mixer, s.hidden)
        feed = (
            moe(
                s.hidden,
                c.size("intermediate_size"),
                c.size("num_local_experts"),
                c.size("num_experts_per_tok"),
                shared_ffn_size=c.size("shared_intermediate_size"),
            )
            if is_moe
            else mlp(s.hidden, c.size("dense_intermediate_size"))
        )
        label = ("sparse " if has_indexer else "full ") + ("moe" if is_moe else "dense")
        return layer(label, mixer, feed, hidden_size=s.hidden)

    blocks = stack(zip(sparse, is_sparse(c, s.layers), strict=True), build)
    count = c.count("num_nextn_predict_layers", "num_mtp_modules")
    each = build((True, True)).num_parameters + 2 * s.hidden * s.hidden + 3 * s.hidden
    return assemble(c, name, blocks, s.hidden, default_context=524288, draft_parameters=count * each)


BUILD = {
    "minimax": _first,
    "minimax_text_01": _first,
    "minimax_m1": _first,
    "MiniMaxText01": _first,
    "minimax_m2": _second,
    "minimax_m3": _third,
    "minimax_m3_vl_text": _third,
    "minimax_m3_vl": _third,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
