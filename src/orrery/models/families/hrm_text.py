"""HRM-Text: two stacks of layers that a token passes several times, the lower one more often.

In each of a few high cycles the lower stack runs some times and the upper one once. Every pass keeps a cache of its
own; the weights are those of the two stacks. Attention has a gate on each element; norms have no weights. Source:
transformers 5.24.0, configuration and modelling files.
"""

from dataclasses import replace

from orrery.models.decoder import LAYERS, Kind, Recipe, decoder, sizes
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Model


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=151808, intermediate_size=4096, head_dim=128)
    each = c.size("num_layers_per_stack", default=c.size(*LAYERS))  # the other key may count every pass
    passes = c.size("H_cycles", default=2) * (c.size("L_cycles", default=3) + 1)
    bias = c.flag("attention_bias")
    recipe = Recipe(qkv_bias=bias, out_bias=bias, mlp_bias=c.flag("mlp_bias"), gate="element", norm_parameters=0)
    model = decoder(c, name, recipe, kinds=[Kind()] * (each * passes))
    blocks = tuple(replace(b, linears=tuple(replace(x, copies=2 * each) for x in b.linears)) for b in model.blocks)
    start = sizes(c).hidden  # what the lower stack begins with
    return replace(model, blocks=blocks, other_parameters=model.other_parameters + start)


FAMILY = Family(model_types=("hrm_text",), build=_build)
