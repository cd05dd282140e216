"""Mixtral: Mistral whose every feed-forward part is eight experts, two a token."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import moe


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(num_key_value_heads=8, intermediate_size=14336, vocab_size=32000)
    s = sizes(c)
    experts = moe(
        s.hidden,
        c.size("intermediate_size"),
        c.size("num_local_experts", default=8),
        c.size("num_experts_per_tok", default=2),
    )
    kinds = [Kind(window=c.count("sliding_window"), is_moe=True)] * s.layers
    return decoder(c, name, Recipe(default_context=131072), kinds=kinds, experts=experts)


FAMILY = Family(model_types=("mixtral",), build=_build)
