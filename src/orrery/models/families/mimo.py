"""Xiaomi's MiMo: 7B is Qwen2 with other numbers; V2-Flash has windows with twice the key/value heads and sinks."""

from orrery.models.decoder import Recipe, assemble, decoder, sizes
from orrery.models.families.deepseek import is_sparse, with_drafts
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import attention, layer, mlp, moe, stack

FULL_EVERY = 6


def _dense(c: Fields, name: str) -> Model:
    bias = c.flag("attention_bias", default=True)
    model = decoder(c, name, Recipe(qkv_bias=bias, default_context=32768))
    return with_drafts(model, model.blocks[0], c.count("num_nextn_predict_layers"))


def _flash(c: Fields, name: str) -> Model:
    c = c.with_defaults(
        vocab_size=152576,
        num_key_value_heads=4,
        head_dim=192,
        v_head_dim=128,
        moe_intermediate_size=2048,
        n_routed_experts=256,
        num_experts_per_tok=8,
        sliding_window=128,
    )
    s = sizes(c)
    value, bias = c.size("v_head_dim"), c.flag("attention_bias")
    sliding_kv = c.size("swa_num_key_value_heads", default=2 * s.kv_heads)
    if pattern := c.sizes("hybrid_layer_pattern"):
        sliding = [bool(x) for x in c.per_layer(pattern, "hybrid_layer_pattern", s.layers)]
    elif types := c.kinds(s.layers, ("sliding_attention", "full_attention")):
        sliding = [t == "sliding_attention" for t in types]
    else:
        sliding = [i > 0 and (i + 1) % FULL_EVERY != 0 for i in range(s.layers)]
    routed = is_sparse(c.with_defaults(first_k_dense_replace=1), s.layers)

    def build(kind: tuple[bool, bool]) -> Block:
        is_sliding, is_moe = kind
        mixer = attention(
            s.hidden,
            s.heads,
            sliding_kv if is_sliding else s.kv_heads,
            s.head,
            value_head_size=value,
            qkv_bias=bias,
            window=c.size("sliding_window") if is_sliding else 0,
            has_sinks=c.flag("add_swa_attention_sink_bias", default=True)
            if is_sliding
            else c.flag("add_full_attention_sink_bias"),
        )
        feed = (
            moe(
                s.hidden,
                c.size("moe_intermediate_size"),
                c.size("n_routed_experts"),
                c.size("num_experts_per_tok"),
                shared_ffn_size=c.size("moe_intermediate_size") * c.count("n_shared_experts"),
            )
            if is_moe
            else mlp(s.hidden, c.size("intermediate_size"))
        )
        label = ("sliding " if is_sliding else "full ") + ("moe" if is_moe else "dense")
        return layer(label, mixer, feed, hidden_size=s.hidden)

    model = assemble(c, name, stack(zip(sliding, routed, strict=True), build), s.hidden, default_context=131072)
    # Drafting layers see a window and have no experts.
    return with_drafts(model, build((True, False)), c.count("num_nextn_predict_layers"))


BUILD = {"mimo": _dense, "mimo_v2_flash": _flash}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
