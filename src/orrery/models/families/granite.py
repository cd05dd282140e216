"""IBM's Granite: dense, with experts, and Granite 4 hybrids with Mamba 2; Bamba is such a hybrid, dense."""

from orrery.models.decoder import Kind, Recipe, assemble, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import Part, attention, layer, mlp, moe, stack
from orrery.models.recurrent import mamba2

ATTENDS, RECURS = ("attention", "full_attention"), ("mamba", "mamba2", "linear_attention")
"""Words for a layer of attention and one of Mamba 2."""


def _dense(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32000, intermediate_size=11008)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias, mlp_bias=c.flag("mlp_bias"))
    return decoder(c, name, recipe)


def _experts_of(c: Fields, hidden: int) -> Part:
    return moe(
        hidden,
        c.size("intermediate_size", default=11008),
        c.size("num_local_experts", default=8),
        c.size("num_experts_per_tok", default=2),
        shared_ffn_size=c.count("shared_intermediate_size"),
    )


def _moe(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32000)
    s = sizes(c)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias)
    return decoder(c, name, recipe, kinds=[Kind(is_moe=True)] * s.layers, experts=_experts_of(c, s.hidden))


def _mamba(c: Fields, hidden: int) -> Part:
    heads = c.size("mamba_n_heads", default=128)
    stated = c.data.get("mamba_d_head")
    inner = c.size("mamba_expand", default=2) * hidden
    head = c.size("mamba_d_head") if isinstance(stated, int) else c.divide(inner, "inner size", heads, "mamba_n_heads")
    return mamba2(
        hidden,
        heads,
        head,
        c.size("mamba_d_state", default=256),
        c.size("mamba_n_groups", default=1),
        c.size("mamba_d_conv", default=4),
        conv_bias=c.flag("mamba_conv_bias", default=True),
        bias=c.flag("mamba_proj_bias"),
    )


def _hybrid(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32000, num_attention_heads=32)
    s = sizes(c)
    is_bamba = c.word("model_type") == "bamba"
    listed = set(c.sizes("attn_layer_indices"))
    key = "layer_types" if "layer_types" in c else "layers_block_type"
    types = c.kinds(s.layers, (*ATTENDS, *RECURS), key=key)
    types = types or tuple(ATTENDS[0] if i in listed else RECURS[0] for i in range(s.layers))
    bias, count = c.flag("attention_bias"), 0 if is_bamba else c.count("num_local_experts", default=8)

    def build(is_full: bool) -> Block:
        rotary = is_bamba or c.word("position_embedding_type") == "rope"
        mixer = (
            attention(s.hidden, s.heads, s.kv_heads, s.head, qkv_bias=bias, out_bias=bias, rotary=rotary)
            if is_full
            else _mamba(c, s.hidden)
        )
        if is_bamba:
            feed = mlp(s.hidden, c.size("intermediate_size", default=14336), bias=c.flag("mlp_bias"))
        elif count:
            feed = _experts_of(c.with_defaults(shared_intermediate_size=1024), s.hidden)
        else:
            feed = mlp(s.hidden, c.size("shared_intermediate_size", default=1024))
        label = ("attention" if is_full else "mamba") + (" moe" if count else " dense")
        return layer(label, mixer, feed, hidden_size=s.hidden)

    blocks = stack([t in ATTENDS for t in types], build)
    return assemble(c, name, blocks, s.hidden, default_context=131072)


BUILD = {
    "granite": _dense,
    "granite4_vision_text": _dense,
    "granitemoe": _moe,
    "granitemoeshared": _moe,
    "granitemoehybrid": _hybrid,
    "bamba": _hybrid,
}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
