"""BLOOM: ALiBi instead of positions, a norm right after the embedding, biases everywhere, a tied head."""

from dataclasses import replace

from orrery.models.decoder import Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=250880)
    recipe = Recipe(
        qkv_bias=True, out_bias=True, mlp_bias=True, is_gated=False, norm_parameters=2, is_tied=True, rotary=False
    )
    hidden = sizes(c).hidden
    model = decoder(c, name, recipe, ffn=4 * hidden)
    return replace(model, other_parameters=model.other_parameters + 2 * hidden)


FAMILY = Family(model_types=("bloom",), build=_build)
