"""Falcon-H1: attention and Mamba 2 side by side on the same normed input, then a feed-forward part, in every layer.

A layer is two blocks here: the Mamba half without norms or sums of its own, then attention and the feed-forward part,
whose first sum takes both halves.
"""

from orrery.models.decoder import assemble, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model
from orrery.models.parts import Part, attention, layer, mlp, stack
from orrery.models.recurrent import mamba2


def _mamba(c: Fields, hidden: int) -> Part:
    inner = c.size("mamba_d_ssm", default=c.size("mamba_expand", default=2) * hidden)
    heads = c.size("mamba_n_heads", default=128)
    return mamba2(
        hidden,
        heads,
        c.divide(inner, "mamba_d_ssm", heads, "mamba_n_heads"),
        c.size("mamba_d_state", default=256),
        c.size("mamba_n_groups", default=1),
        c.size("mamba_d_conv", default=4),
        conv_bias=c.flag("mamba_conv_bias", default=True),
        bias=c.flag("mamba_proj_bias"),
        has_norm=c.flag("mamba_rms_norm"),
    )


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=128000, intermediate_size=14336, num_attention_heads=32)
    c = c.with_defaults(num_key_value_heads=8, mamba_d_ssm=None if "mamba_d_ssm" in c.data else 1024)
    s = sizes(c)
    bias = c.flag("attention_bias")

    def build(is_mamba: bool) -> Block:
        if is_mamba:
            return layer("mamba", _mamba(c, s.hidden), hidden_size=s.hidden, num_norms=0, num_reduces=0)
        mixer = attention(s.hidden, s.heads, s.kv_heads, s.head, qkv_bias=bias, out_bias=bias)
        feed = mlp(s.hidden, c.size("intermediate_size"), bias=c.flag("mlp_bias"))
        return layer("attention dense", mixer, feed, hidden_size=s.hidden)

    return assemble(c, name, stack([True, False] * s.layers, build), s.hidden, default_context=8192)


FAMILY = Family(model_types=("falcon_h1",), build=_build)
