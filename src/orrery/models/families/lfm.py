"""Liquid's LFM2: short gated convolutions with a layer of attention now and then; dense, or with experts.

LFM3 adds windows, sandwich norms and a gate on every head.
"""

from orrery.models.decoder import assemble, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import Part, attention, layer, mlp, moe, stack
from orrery.models.recurrent import short_convolution

DENSE = {"vocab_size": 65536, "num_key_value_heads": 8, "num_attention_heads": 32}
SPARSE = DENSE | {
    "moe_intermediate_size": 1792,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "num_dense_layers": 2,
}

THIRD = {
    "vocab_size": 128000,
    "num_key_value_heads": 4,
    "num_attention_heads": 16,
    "head_dim": 128,
    "intermediate_size": 7680,
    "sliding_window": 256,
    "conv_L_cache": 7,
    "use_sandwich_norm": True,
    "use_attention_gate": True,
}
DEFAULTS = {"lfm2": DENSE, "lfm2_moe": SPARSE, "lfm3": THIRD}
NAMES = {"conv": "convolution", "full_attention": "attention", "sliding_attention": "sliding"}
KINDS = tuple(NAMES)


def _width(c: Fields) -> int:
    """Dense LFM2 states the width of a feed-forward part without a gate, and rounds two thirds of it up."""
    stated = c.size("block_ff_dim", "intermediate_size", default=12288)
    if c.word("model_type") != "lfm2" or not c.flag("block_auto_adjust_ff_dim", default=True):
        return stated
    multiple = c.size("block_multiple_of", default=256)
    width = int(c.number("block_ffn_dim_multiplier", default=1.0) * int(2 * stated / 3))
    return -(-width // multiple) * multiple


def _types(c: Fields, layers: int) -> tuple[str, ...]:
    """Kind of each layer from layer_types, or from the list of those that attend (all of them by default)."""
    if types := c.kinds(layers, KINDS):
        return types
    if c.word("model_type") == "lfm3":
        return tuple(KINDS[1] if i % 4 == 2 else KINDS[2] if i and i % 4 == 0 else KINDS[0] for i in range(layers))
    full = set(c.sizes("full_attn_idxs")) if "full_attn_idxs" in c else set(range(layers))
    return tuple("full_attention" if i in full else "conv" for i in range(layers))


def _build(c: Fields, name: str) -> Model:
    is_sparse = c.word("model_type") == "lfm2_moe"
    c = c.with_defaults(**DEFAULTS[c.word("model_type")])
    c = c.with_defaults(tie_word_embeddings=c.flag("tie_embedding", default=True))
    s = sizes(c)
    dense = c.count("num_dense_layers") if is_sparse else s.layers

    norms = 4 if c.flag("use_sandwich_norm") else 2
    gate = s.heads if c.flag("use_attention_gate") else 0
    bias = c.flag("attention_bias")

    def build(kind: tuple[str, bool]) -> Block:
        mixer, is_moe = kind
        part = (
            short_convolution(s.hidden, c.size("conv_L_cache", default=3), bias=c.flag("conv_bias"))
            if mixer == "conv"
            else attention(
                s.hidden,
                s.heads,
                s.kv_heads,
                s.head,
                qk_norm="head",
                qkv_bias=bias,
                out_bias=bias,
                gate_features=gate,
                window=c.size("sliding_window") if mixer == "sliding_attention" else 0,
            )
        )
        label = NAMES[mixer] + (" moe" if is_moe else " dense")
        return layer(label, part, _feed(c, s.hidden, is_moe), hidden_size=s.hidden, num_norms=norms)

    kinds = [(t, i >= dense) for i, t in enumerate(_types(c, s.layers))]
    return assemble(c, name, stack(kinds, build), s.hidden, default_context=128000)


def _feed(c: Fields, hidden: int, is_moe: bool) -> Part:
    if not is_moe:
        return mlp(hidden, _width(c))
    width, count = c.size("moe_intermediate_size"), c.size("num_experts")
    return moe(hidden, width, count, c.size("num_experts_per_tok"))


FAMILY = Family(model_types=tuple(DEFAULTS), build=_build)
