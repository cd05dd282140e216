"""The GPT line before Llama: LayerNorms with a shift, plain feed-forward parts with biases."""

from orrery.models.decoder import CONTEXT, Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _gpt2(c: Fields, name: str) -> Model:
    """GPT-2, GPT-3 and Megatron's GPT: learned positions, a tied head; GPT-BigCode shares one key/value head."""
    c = c.with_defaults(vocab_size=50257, n_positions=1024)
    s = sizes(c)
    if c.word("model_type") == "gpt_bigcode" and c.flag("multi_query", default=True):
        c = c.with_defaults(num_key_value_heads=1)
    recipe = Recipe(
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        is_gated=False,
        norm_parameters=2,
        rotary=False,
        is_tied=True,
        default_context=1024,
    )
    return decoder(
        c, name, recipe, ffn=c.count("n_inner", "intermediate_size") or 4 * s.hidden, positions=c.size(*CONTEXT)
    )


def _expanded(c: Fields) -> tuple[str, ...]:
    """``attention_types``: pairs of (kinds, how often they repeat)."""
    found: list[str] = []
    for entry in c.items("attention_types"):
        pair = Fields({"attention_types": entry}, c.where).items("attention_types")
        if len(pair) != 2:
            raise c.wrong("attention_types", entry, '[[["global", "local"], how often]]')
        fields = Fields({"kinds": pair[0], "num_layers": pair[1]}, f"{c.where}: attention_types")
        found += fields.words("kinds") * fields.size("num_layers")
    return tuple(found)


def _gpt_neo(c: Fields, name: str) -> Model:
    """GPT-Neo: no biases in q, k and v; every other layer looks 256 tokens back."""
    c = c.with_defaults(vocab_size=50257, max_position_embeddings=2048)
    s = sizes(c)
    types = c.words("attention_layers") or _expanded(c) or ("global", "local") * (s.layers // 2 + 1)
    window = c.count("window_size", default=256)
    kinds = [Kind(window=window if t == "local" else 0) for t in c.per_layer(types, "attention_layers", s.layers)]
    recipe = Recipe(out_bias=True, mlp_bias=True, is_gated=False, norm_parameters=2, rotary=False, is_tied=True)
    return decoder(
        c, name, recipe, kinds=kinds, ffn=c.count("intermediate_size") or 4 * s.hidden, positions=c.size(*CONTEXT)
    )


def _gpt_j(c: Fields, name: str) -> Model:
    """GPT-J: one norm feeds attention and feed-forward side by side; no bias in attention; a head with bias."""
    c = c.with_defaults(vocab_size=50400, n_positions=2048)
    recipe = Recipe(mlp_bias=True, is_gated=False, num_norms=1, norm_parameters=2, num_reduces=1, has_head_bias=True)
    return decoder(c, name, recipe, ffn=c.count("n_inner") or 4 * sizes(c).hidden)


def _gpt_neox(c: Fields, name: str) -> Model:
    """GPT-NeoX and Pythia: two norms side by side when the residual is parallel (the default); untied head."""
    c = c.with_defaults(vocab_size=50432, intermediate_size=24576)
    bias = c.flag("attention_bias", default=True)
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=True,
        is_gated=False,
        norm_parameters=2,
        num_reduces=1 if c.flag("use_parallel_residual", default=True) else 2,
    )
    return decoder(c, name, recipe)


BUILD = {"gpt2": _gpt2, "gpt_bigcode": _gpt2, "gpt_neo": _gpt_neo, "gptj": _gpt_j, "gpt_neox": _gpt_neox}

FAMILY = Family(model_types=tuple(BUILD), build=lambda c, name: BUILD[c.word("model_type")](c, name))
