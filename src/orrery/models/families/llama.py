"""Llama and the many families that are Llama with other numbers: rotary attention, RMS norms, a gated feed-forward."""

from orrery.models.decoder import Kind, Recipe, decoder, sizes, windows
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _build(c: Fields, name: str) -> Model:
    kind = c.word("model_type")
    if kind in ("mistral", "ministral"):
        c = c.with_defaults(num_key_value_heads=8, intermediate_size=14336, vocab_size=32000)
    if kind == "ministral3":
        c = c.with_defaults(num_key_value_heads=8, head_dim=128, intermediate_size=14336, vocab_size=131072)
    # Llama itself has no windows: only a list of layers brings them there.
    window = c.count("sliding_window") if kind in ("mistral", "ministral") or "layer_types" in c else 0
    bias = c.flag("attention_bias", "qkv_bias", "bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=c.flag("attention_bias", "bias"),
        mlp_bias=c.flag("mlp_bias", "bias") if kind != "aquila" else False,
        default_context={"mistral": 4096 * 32, "ministral3": 4096 * 64}.get(kind, 2048),
    )
    return decoder(c, name, recipe, kinds=[Kind(window=w) for w in windows(c, sizes(c).layers, window)])


FAMILY = Family(
    model_types=("llama", "mistral", "ministral", "ministral3", "yi", "Yi", "aquila", "minicpm"),
    build=_build,
)
