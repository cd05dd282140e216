"""MatMul-free language models: ternary layers around a gated element-wise recurrence (``hgrn_bit``)."""

from dataclasses import replace

from orrery.models.decoder import HIDDEN, LAYERS, assemble
from orrery.models.family import Family
from orrery.models.fields import Fields
from orrery.models.model import Block, Model, Role
from orrery.models.parts import layer, mlp, stack
from orrery.models.recurrent import gated_vector

FFN_RATIO, FFN_MULTIPLE = 4, 256
"""Width of the gated unit where the config names none: two thirds of the ratio times the hidden size, rounded up."""


def _ffn(c: Fields, hidden: int) -> int:
    smallest = int(hidden * c.size("hidden_ratio", default=FFN_RATIO) * 2 / 3)
    return c.count("intermediate_size") or FFN_MULTIPLE * -(-smallest // FFN_MULTIPLE)


def _build(c: Fields, name: str) -> Model:
    c = c.with_defaults(vocab_size=32000, hidden_size=2048, num_hidden_layers=24)
    hidden, layers = c.size(*HIDDEN), c.size(*LAYERS)
    inner, ffn = hidden * c.size("expand_ratio", default=1), _ffn(c, hidden)
    kernel = c.size("conv_size", default=4) if c.flag("use_short_conv") else 0
    mixer = gated_vector(hidden, inner, kernel, has_shared_kernel=c.flag("share_conv_kernel", default=True))
    entering = 4 * hidden + inner + ffn  # every ternary layer has a norm of its own, over what enters it
    bounds = hidden if c.flag("use_lower_bound", default=True) else 0

    def build(_: int) -> Block:
        return layer("matmul-free", mixer, mlp(hidden, ffn), hidden_size=hidden, other_parameters=entering + bounds)

    model = assemble(c, name, stack([0] * layers, build), hidden, other_parameters=hidden)  # norm before the head
    return replace(model, kept_16bit_roles=frozenset[Role]({"router"}))  # the head is ternary like the layers


FAMILY = Family(model_types=("hgrn_bit",), build=_build)
