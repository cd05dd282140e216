"""Encoders (BERT, RoBERTa) and the encoder-decoders T5 and mT5."""

from dataclasses import replace

from orrery.models.decoder import assemble, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, attention, layer, mlp, stack


def _bert(c: Fields, name: str) -> Model:
    """Learned positions and token types, norms after each half, a pooler on the first token; no language head."""
    is_roberta = "roberta" in c.word("model_type")
    c = c.with_defaults(vocab_size=50265 if is_roberta else 30522, max_position_embeddings=512, intermediate_size=3072)
    s = sizes(c)

    def build(_: int) -> Block:
        mixer = attention(
            s.hidden, s.heads, s.kv_heads, s.head, qkv_bias=True, out_bias=True, is_causal=False, rotary=False
        )
        feed = mlp(s.hidden, c.size("intermediate_size"), is_gated=False, bias=True)
        return layer("encoder", mixer, feed, hidden_size=s.hidden, norm_parameters=2)

    positions = c.size("max_position_embeddings") + c.size("type_vocab_size", default=2)
    pooler = s.hidden * s.hidden + s.hidden
    return assemble(
        c,
        name,
        stack([0] * s.layers, build),
        s.hidden,
        positions=positions,
        final_norm=2,
        other_parameters=pooler,
        has_head=False,
        default_context=512,
    )


def _cross(hidden: int, heads: int, head: int) -> Part:
    """A decoder's attention to what the encoder returned: queries here, keys and values once a sequence."""
    inner = heads * head
    return Part(
        linears=(
            Linear(name="cross_q", in_features=hidden, out_features=inner, shard="column", role="attention"),
            Linear(name="cross_kv", in_features=hidden, out_features=2 * inner, shard="column", role="attention"),
            Linear(name="cross_out", in_features=inner, out_features=hidden, shard="row", role="attention"),
        ),
        norm_elements=hidden,
        other_parameters=hidden,
    )


def _t5(c: Fields, name: str) -> Model:
    """RMS norms, no biases, relative positions as a table of buckets by head in the first layer of each stack."""
    c = c.with_defaults(vocab_size=250112 if c.word("model_type") == "mt5" else 32128)
    hidden, heads, head = c.size("d_model"), c.size("num_heads"), c.size("d_kv", default=64)
    layers = c.size("num_layers")
    default = "gated-gelu" if c.word("model_type") == "mt5" else "relu"
    gated = c.word("feed_forward_proj", default=default).startswith("gated")
    table = c.size("relative_attention_num_buckets", default=32) * heads

    def build(is_decoder: bool) -> Block:
        mixer = attention(hidden, heads, heads, head, is_causal=is_decoder, rotary=False)
        feed = mlp(hidden, c.size("d_ff"), is_gated=gated)
        cross = [_cross(hidden, heads, head)] if is_decoder else []
        return layer(
            "decoder" if is_decoder else "encoder",
            mixer,
            *cross,
            feed,
            hidden_size=hidden,
            num_reduces=3 if is_decoder else 2,
        )

    decoder = replace(build(True), count=c.size("num_decoder_layers", default=layers))
    return assemble(
        c,
        name,
        (decoder,),
        hidden,
        is_tied=True,
        encoder=(replace(build(False), count=layers),),
        final_norm=2,
        other_parameters=2 * table,
        default_context=512,
    )


BUILD = {"bert": _bert, "roberta": _bert, "xlm-roberta": _bert, "t5": _t5, "mt5": _t5}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
