"""Cohere's Command: one norm feeds attention and feed-forward side by side; Command R7B and A have windows.

North Vision (Cohere Compass) has them where its list of layers says so.
"""

from orrery.models.decoder import Kind, Recipe, decoder, sizes, windows
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=256000, intermediate_size=22528)
    s = sizes(c)
    kinds: list[Kind] = []
    if c.word("model_type") != "cohere":
        every = 1 if c.word("model_type") == "cohere_compass_text" else c.size("sliding_window_pattern", default=4)
        default = ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(s.layers)]
        kinds = [Kind(window=w) for w in windows(c, s.layers, c.count("sliding_window", default=4096), default)]
    bias = c.flag("attention_bias")
    recipe = Recipe(
        qkv_bias=bias,
        out_bias=bias,
        num_norms=1,
        num_reduces=1,
        is_tied=True,
        qk_norm="heads" if c.flag("use_qk_norm") else "",
        default_context=8192,
    )
    return decoder(c, name, recipe, kinds=kinds)


FAMILY = Family(model_types=("cohere", "cohere2", "cohere_compass_text"), build=_build)
