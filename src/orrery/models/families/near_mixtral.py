"""Families with routed experts that differ from Mixtral in a norm, a shared expert or the names of their keys."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.families.deepseek import with_drafts
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe


def _largest(c: Fields, key: str, default: int) -> int:
    """Hunyuan states some sizes as a number, or as a list with one for every layer (all equal so far)."""
    if isinstance(c.data.get(key), list):
        return max(c.sizes(key), default=default)
    return c.size(key, default=default)


def _hunyuan(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=290943, intermediate_size=11008)
    s = sizes(c)
    width = c.size("intermediate_size")
    bias = c.flag("attention_bias")
    shared = width if c.flag("use_mixed_mlp_moe", default=True) else 0
    experts = moe(
        s.hidden,
        _largest(c, "moe_intermediate_size", width),
        _largest(c, "num_experts", 1),
        _largest(c, "moe_topk", 1),
        shared_ffn_size=shared * _largest(c, "num_shared_expert", 1),
    )
    recipe = Recipe(qkv_bias=bias, out_bias=bias, qk_norm="head" if c.flag("use_qk_norm", default=True) else "")
    return decoder(c, name, recipe, kinds=[Kind(is_moe=True)] * s.layers, experts=experts)


def _ernie(c: Fields, name: str) -> Model:
    """ERNIE 4.5: dense first layers; the router's correction bias is a parameter."""
    c = c.with_defaults(vocab_size=103424, num_key_value_heads=4, intermediate_size=12288)
    bias = c.flag("use_bias")
    recipe = Recipe(
        qkv_bias=bias, out_bias=bias, mlp_bias=bias, is_tied=True, default_context=131072, has_head_bias=bias
    )
    if c.word("model_type") in ("ernie4_5", "paddleocr_vl_text"):
        return decoder(c.with_defaults(head_dim=128), name, recipe)
    s = sizes(c)
    first, step = c.count("moe_layer_start_index", default=1), c.size("moe_layer_interval", default=1)
    last = c.number("moe_layer_end_index", default=-1)
    end = s.layers - 1 if last == -1 else last
    count, width = c.size("moe_num_experts", default=64), c.size("moe_intermediate_size", default=1536)
    experts = moe(
        s.hidden,
        width,
        count,
        c.size("moe_k", default=6),
        bias=bias,
        shared_bias=bias,
        shared_ffn_size=width * c.count("moe_num_shared_experts", default=2),
        correction_parameters=count,
    )
    kinds = [Kind(is_moe=(i + 1) % step == 0 and first <= i <= end) for i in range(s.layers)]
    model = decoder(c, name, recipe, kinds=kinds, experts=experts)
    return with_drafts(model, model.blocks[0], c.count("num_nextn_predict_layers"))


def _dbrx(c: Fields, name: str) -> Model:
    """DBRX: sixteen experts, four a token; LayerNorms without shift."""
    empty = Fields({}, c.where)
    mixer, feed = c.table("attn_config") or empty, c.table("ffn_config") or empty
    c = c.with_defaults(vocab_size=100352, num_key_value_heads=mixer.size("kv_n_heads", default=1))
    s = sizes(c)
    experts = moe(
        s.hidden,
        feed.size("ffn_hidden_size", default=3584),
        feed.size("moe_num_experts", default=4),
        feed.size("moe_top_k", default=1),
    )
    recipe = Recipe(default_context=32768)
    return decoder(c, name, recipe, kinds=[Kind(is_moe=True)] * s.layers, experts=experts)


BUILD = {
    "hunyuan_v1_moe": _hunyuan,
    "hunyuan": _hunyuan,
    "ernie4_5": _ernie,
    "ernie4_5_moe": _ernie,
    "paddleocr_vl_text": _ernie,
    "dbrx": _dbrx,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
