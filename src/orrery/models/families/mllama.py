"""Llama 3.2 Vision: Llama, with layers in between that attend to features of pictures.

Requests are read as text alone, for which those layers are passed over: their weights rest in memory. Source:
transformers 5.24.0, configuration and modelling files of mllama.
"""

from dataclasses import replace

from orrery.models.decoder import LAYERS, Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model
from orrery.models.parts import attention, layer, mlp

DEFAULTS = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "rope_theta": 500000,
}
CROSSING = tuple(range(3, 40, 5))
"""Layers that attend to pictures where no list says so."""
MORE_ROWS = 8
"""Rows of the embedding beyond the vocabulary: words that stand for pictures and are never produced."""


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(**DEFAULTS)
    s, layers = sizes(c), c.size(*LAYERS)
    listed = c.sizes("cross_attention_layers") if "cross_attention_layers" in c else CROSSING
    crossing = len({i for i in listed if i < layers})
    if crossing == layers:
        raise c.wrong("cross_attention_layers", crossing, "fewer layers than the model has")
    model = decoder(c, name, Recipe(default_context=131072), kinds=[Kind()] * (layers - crossing))
    mixer = attention(s.hidden, s.heads, s.kv_heads, s.head, qk_norm="head")
    feed = mlp(s.hidden, c.size("intermediate_size"))
    cross = layer("crossing", mixer, feed, hidden_size=s.hidden, other_parameters=2)  # a gate on each half
    which = (
        "1 layer that attends to pictures rests" if crossing == 1 else f"{crossing} layers that attend to pictures rest"
    )
    text = f"{which} in memory: requests are read as text alone"
    return replace(
        model,
        embedding_parameters=model.embedding_parameters + MORE_ROWS * s.hidden,
        resting_parameters=crossing * cross.num_parameters,
        published=(*model.published, ("layers", text)),
    )


FAMILY = Family(model_types=("mllama_text_model",), build=_build)
