"""The ordinary decoder: embedding, equal or alternating layers of attention and feed-forward, norm, head.

Most families are this with a few facts changed; a ``Recipe`` holds those facts, a ``Kind`` says what changes from
layer to layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orrery.models.fields import Fields
from orrery.models.model import Block, Linear, Model
from orrery.models.parts import Part, QkNorm, attention, layer, mlp, stack
from orrery.models.rotation import rotation_of

Gate = Literal["", "head", "element"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Properties of a family that hold in every layer."""

    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    is_gated: bool = True
    num_norms: int = 2
    norm_parameters: int = 1  # an element: 1 a scale, 2 a scale and a shift, 0 neither
    qk_norm: QkNorm = ""
    num_reduces: int = 2
    other_parameters: int = 0  # a layer's scales and the like
    has_gate_bias: bool = False  # one number a head
    has_sinks: bool = False
    gate: Gate = ""  # of what attention returns: a factor for each head, or for each element
    rotary: bool = True
    is_tied: bool = False  # what a missing tie_word_embeddings means
    has_head_bias: bool = False
    has_final_norm: bool = True
    default_context: int = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Properties that may change from layer to layer."""

    window: int = 0
    chunk: int = 0
    is_moe: bool = False
    rotary: bool = True
    heads: int = 0  # 0: as many as the config states for all layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The widths that nearly every config states."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    vocab: int


HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "seq_length", "model_max_length")


def context_tokens(c: Fields, default: int) -> int:
    """The longest sequence; a config that asks for YaRN serves its original context times the factor."""
    stated = c.size(*CONTEXT, default=default)
    scaling = c.table("rope_scaling") or c.table("rope_parameters")
    if scaling is None or scaling.word("rope_type", "type") != "yarn":
        return stated
    original = scaling.count("original_max_position_embeddings") or stated
    return max(stated, int(original * scaling.number("factor", default=1.0)))


def sizes(c: Fields) -> Sizes:
    """The common sizes; key/value heads default to heads and a head to hidden size / heads."""
    hidden, heads = c.size(*HIDDEN), c.size(*HEADS)
    head = c.size("head_dim", default=0, least=0) or c.divide(hidden, "hidden_size", heads, "num_attention_heads")
    return Sizes(
        hidden=hidden,
        layers=c.size(*LAYERS),
        heads=heads,
        head=head,
        kv_heads=c.size("num_key_value_heads", default=heads),
        vocab=c.size("vocab_size"),
    )


def decoder(
    c: Fields,
    name: str,
    recipe: Recipe,
    *,
    kinds: Sequence[Kind] = (),
    experts: Part | None = None,
    ffn: int = 0,
    positions: int = 0,
) -> Model:
    """The whole model; ``experts`` is the feed-forward part of layers whose kind ``is_moe``, ``ffn`` of the others."""
    s = sizes(c)

    def build(kind: Kind) -> Block:
        heads = kind.heads or s.heads
        part = attention(
            s.hidden,
            heads,
            s.kv_heads,
            s.head,
            qkv_bias=recipe.qkv_bias,
            out_bias=recipe.out_bias,
            qk_norm=recipe.qk_norm,
            window=kind.window,
            chunk=kind.chunk,
            has_sinks=recipe.has_sinks,
            gate_features={"": 0, "head": heads, "element": heads * s.head}[recipe.gate],
            rotary=recipe.rotary and kind.rotary,
        )
        if kind.is_moe and experts:
            feed = experts
        else:
            width = ffn or c.size("intermediate_size")
            feed = mlp(s.hidden, width, is_gated=recipe.is_gated, bias=recipe.mlp_bias)
        return layer(
            kind_name(kind),
            part,
            feed,
            hidden_size=s.hidden,
            num_norms=recipe.num_norms,
            norm_parameters=recipe.norm_parameters,
            num_reduces=recipe.num_reduces,
            other_parameters=recipe.other_parameters + (heads * recipe.has_gate_bias),
        )

    blocks = stack(kinds or [Kind(is_moe=experts is not None)] * s.layers, build)
    return assemble(
        c,
        name,
        blocks,
        s.hidden,
        is_tied=recipe.is_tied,
        positions=positions,
        head_bias=recipe.has_head_bias,
        final_norm=recipe.norm_parameters if recipe.has_final_norm else 0,
        default_context=recipe.default_context,
    )


def kind_name(kind: Kind) -> str:
    """Name of a layer of this kind."""
    view = "sliding " if kind.window else "chunked " if kind.chunk else ""
    return view + ("moe" if kind.is_moe else "dense")


def assemble(
    c: Fields,
    name: str,
    blocks: tuple[Block, ...],
    hidden: int,
    *,
    is_tied: bool = False,
    positions: int = 0,
    head_bias: bool = False,
    final_norm: int = 1,
    default_context: int = 2048,
    other_parameters: int = 0,
    embedding_size: int = 0,
    draft_parameters: int = 0,
    encoder: tuple[Block, ...] = (),
    has_head: bool = True,
    extra_embedding: int = 0,
) -> Model:
    """Embedding, blocks, final norm (``final_norm`` weights an element) and head."""
    vocab, width = c.size("vocab_size"), embedding_size or hidden
    head = (
        Linear(
            name="head",
            in_features=width,
            out_features=vocab,
            shard="vocab",
            role="head",
            has_bias=head_bias,
        )
        if has_head
        else None
    )
    tied = c.flag("tie_word_embeddings", default=is_tied)
    return Model(
        name=name,
        family=c.word("model_type", default="decoder"),
        hidden_size=hidden,
        vocab_size=vocab,
        max_context_tokens=context_tokens(c, default_context),
        blocks=blocks,
        embedding_parameters=vocab * width + positions * hidden + extra_embedding,
        head=head,
        is_head_tied=tied and has_head,
        other_parameters=final_norm * hidden + other_parameters + (vocab if tied and head_bias else 0),
        encoder=encoder,
        draft_parameters=draft_parameters,
        rotation=rotation_of(c),
    )


HYBRID = ("full_attention", "linear_attention")
"""Words for the layers of models that attend in full now and then."""
WINDOWED = ("sliding_attention", "sliding")
WHOLE = ("full_attention", "full", "attention", "global")


def windows(c: Fields, num_layers: int, window: int, default: Sequence[str] = ()) -> list[int]:
    """The window of each layer from ``layer_types`` (or ``default`` types); 0 looks at everything."""
    types = c.kinds(num_layers, (*WINDOWED, *WHOLE)) or tuple(default)
    if not types:
        return [window] * num_layers
    if set(types) & set(WINDOWED) and not window:
        raise c.wrong("sliding_window", None, "the tokens that windowed layers see")
    return [window if t in WINDOWED else 0 for t in types]
