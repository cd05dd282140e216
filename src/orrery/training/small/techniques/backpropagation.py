"""Backpropagation: all layers forward, one loss, all layers back in one chain."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.small.work import (
    WORD_BYTES,
    Sizes,
    StepWork,
    forward,
    input_gradient,
    readout,
    state_bytes,
    update,
    weight_gradient,
)


def rule(sizes: Sizes, layer: int, knobs: NoKnobs) -> StepWork:
    """Every layer's products forward and twice back, the first layer's only once; one unit, whatever ``layer`` says."""
    del layer, knobs
    n, hidden, head = sizes.batch, sizes.hidden_layers, (sizes.hidden[-1], sizes.num_classes)
    ops = [op for shape in hidden for op in forward(n, shape)]
    ops += [*readout(n, head), weight_gradient(n, head)]
    for shape in (head, *hidden[:0:-1]):
        ops += input_gradient(n, shape)
    ops += [weight_gradient(n, shape) for shape in hidden[::-1]]
    ops.append(update([*hidden, head]))
    return StepWork(
        ops=tuple(ops),
        activation_bytes=WORD_BYTES * n * (sizes.inputs + sum(sizes.hidden) + sizes.num_classes),
        state_bytes=state_bytes([*hidden, head], [*hidden, head]),
    )


TECHNIQUE = Technique(
    name="backpropagation",
    extension_point="training.learning_rule",
    rule=rule,
    gains="Every weight follows the gradient of the loss that counts, and all layers learn in every pass.",
    costs="All activations are kept until the way back, which takes twice the work of the way up.",
    claims=("rumelhart-1986",),
)
