"""OPT: learned positions (two spare rows), LayerNorms, ReLU; the 350M model projects its embedding down."""

from orrery.models.decoder import Recipe, assemble, decoder
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model

SPARE_POSITIONS = 2
"""OPTLearnedPositionalEmbedding in transformers adds two rows before position 0."""


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=50272, max_position_embeddings=2048, ffn_dim=3072)
    bias = c.flag("enable_bias", default=True)
    affine = 2 if c.flag("layer_norm_elementwise_affine", default=True) else 0
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        is_gated=False,
        norm_parameters=affine,
        is_tied=True,
        rotary=False,
    )
    positions = c.size("max_position_embeddings") + SPARE_POSITIONS
    model = decoder(c, name, recipe, ffn=c.size("ffn_dim"), positions=positions)
    hidden, width = model.hidden_size, c.size("word_embed_proj_dim", default=model.hidden_size)
    if width == hidden:
        return model
    final = affine if c.flag("do_layer_norm_before", default=True) and not c.flag("_remove_final_layer_norm") else 0
    return assemble(
        c,
        name,
        model.blocks,
        hidden,
        is_tied=True,
        positions=positions,
        final_norm=final,
        embedding_size=width,
        other_parameters=2 * width * hidden,
    )


FAMILY = Family(model_types=("opt",), build=_build)
