"""State-space models: Mamba 1 (and Falcon-Mamba), Mamba 2, and Jamba: Mamba 1 with attention and experts."""

from orrery.models.decoder import HIDDEN, LAYERS, assemble, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import attention, layer, mlp, moe, stack
from orrery.models.recurrent import mamba1, mamba2

RANK_DIVISOR = 16
"""``time_step_rank = "auto"`` is hidden size / 16, rounded up."""


def _rank(c: Fields, key: str, hidden: int) -> int:
    return -(-hidden // RANK_DIVISOR) if c.data.get(key) in (None, "auto") else c.size(key)


def _first(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=50280)
    hidden, layers = c.size(*HIDDEN), c.size(*LAYERS)
    inner = c.count("intermediate_size", "d_inner") or c.size("expand", default=2) * hidden
    part = mamba1(
        hidden,
        inner,
        c.size("state_size", default=16),
        _rank(c, "time_step_rank", hidden),
        c.size("conv_kernel", default=4),
        conv_bias=c.flag("use_conv_bias", default=True),
        bias=c.flag("use_bias"),
    )

    def build(_: int) -> Block:
        return layer("mamba", part, hidden_size=hidden, num_norms=1, num_reduces=1)

    return assemble(c, name, stack([0] * layers, build), hidden, is_tied=True, default_context=1048576)


def _second(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32768)
    hidden, layers = c.size(*HIDDEN), c.size(*LAYERS)
    head = c.size("head_dim", default=64)
    heads = c.size("num_heads", default=max(1, c.size("expand", default=2) * hidden // head))
    part = mamba2(
        hidden,
        heads,
        head,
        c.size("state_size", default=128),
        c.size("n_groups", default=8),
        c.size("conv_kernel", default=4),
        conv_bias=c.flag("use_conv_bias", default=True),
        bias=c.flag("use_bias"),
    )

    def build(_: int) -> Block:
        return layer("mamba", part, hidden_size=hidden, num_norms=1, num_reduces=1)

    return assemble(c, name, stack([0] * layers, build), hidden, default_context=1048576)


def _jamba(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=65536, num_key_value_heads=8, intermediate_size=14336)
    s = sizes(c)
    every, first = c.size("attn_layer_period", default=8), c.count("attn_layer_offset", default=4)
    sparse_every, sparse_first = c.size("expert_layer_period", default=2), c.count("expert_layer_offset", default=1)
    count = c.size("num_experts", default=16)
    inner = c.size("mamba_expand", default=2) * s.hidden

    def build(kind: tuple[bool, bool]) -> Block:
        is_full, is_moe = kind
        mixer = (
            attention(s.hidden, s.heads, s.kv_heads, s.head, rotary=False)
            if is_full
            else mamba1(
                s.hidden,
                inner,
                c.size("mamba_d_state", default=16),
                _rank(c, "mamba_dt_rank", s.hidden),
                c.size("mamba_d_conv", default=4),
                has_norms=True,
                bias=c.flag("mamba_proj_bias"),
                conv_bias=c.flag("mamba_conv_bias", default=True),
            )
        )
        width = c.size("intermediate_size")
        feed = moe(s.hidden, width, count, c.size("num_experts_per_tok", default=2)) if is_moe else mlp(s.hidden, width)
        label = ("attention " if is_full else "mamba ") + ("moe" if is_moe else "dense")
        return layer(label, mixer, feed, hidden_size=s.hidden)

    kinds = [(i % every == first, count > 1 and i % sparse_every == sparse_first) for i in range(s.layers)]
    return assemble(c, name, stack(kinds, build), s.hidden, default_context=262144)


BUILD = {"mamba": _first, "falcon_mamba": _first, "mamba2": _second, "jamba": _jamba}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
