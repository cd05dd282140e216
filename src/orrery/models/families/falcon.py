"""Falcon: attention and feed-forward side by side; 7B shares one key/value head and one norm, 40B and 180B do not."""

from orrery.models.decoder import Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=65024)
    s = sizes(c)
    new = c.flag("new_decoder_architecture")
    parallel = new or c.flag("parallel_attn", default=True)
    heads = s.heads
    shared = c.size("num_kv_heads", "n_head_kv", default=heads) if new else 1
    if not new and not c.flag("multi_query", default=True):
        shared = heads
    norms = c.count("num_ln_in_parallel_attn", default=2 if new else 1) or 1
    bias = c.flag("bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        is_gated=False,
        norm_parameters=2,
        is_tied=True,
        num_norms=norms if parallel else 2,
        num_reduces=1 if parallel else 2,
        rotary=not c.flag("alibi"),
    )
    ffn = c.count("ffn_hidden_size") or 4 * s.hidden
    return decoder(c.with_defaults(num_key_value_heads=shared), name, recipe, ffn=ffn)


FAMILY = Family(model_types=("falcon", "RefinedWeb", "RefinedWebModel"), build=_build)
