"""gpt-oss: attention sinks, a 128-token window in every other layer, four biased experts a token, held within 7."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes, windows
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(num_key_value_heads=8, head_dim=64, vocab_size=201088, intermediate_size=2880)
    s = sizes(c)
    experts = moe(
        s.hidden,
        c.size("intermediate_size"),
        c.size("num_local_experts", "num_experts", default=128),
        c.size("num_experts_per_tok", "experts_per_token", default=4),
        bias=True,
        router_bias=True,
        is_clamped=True,
    )
    alternating = ["full_attention" if (i + 1) % 2 == 0 else "sliding_attention" for i in range(s.layers)]
    kinds = [
        Kind(window=w, is_moe=True)
        for w in windows(c, s.layers, c.count("sliding_window", default=128), default=alternating)
    ]
    bias = c.flag("attention_bias", default=True)
    recipe = Recipe(qkv_bias=bias, out_bias=bias, has_sinks=True, default_context=131072)
    return decoder(c, name, recipe, kinds=kinds, experts=experts)


FAMILY = Family(model_types=("gpt_oss",), build=_build)
