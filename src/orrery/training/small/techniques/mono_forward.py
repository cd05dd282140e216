"""Mono-Forward: one layer at a time against its own small readout; nothing is passed back below it."""

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
    """Forward through the layers below, which stand still; then the layer, its readout, and both their gradients."""
    del knobs
    n, hidden = sizes.batch, sizes.hidden_layers
    head = (sizes.hidden[layer], sizes.num_classes)
    ops = [op for shape in hidden[: layer + 1] for op in forward(n, shape)]
    ops += [*readout(n, head), weight_gradient(n, head), *input_gradient(n, head), weight_gradient(n, hidden[layer])]
    ops.append(update([hidden[layer], head]))
    heads = [(width, sizes.num_classes) for width in sizes.hidden]
    return StepWork(
        ops=tuple(ops),
        activation_bytes=WORD_BYTES * n * (sum(hidden[layer]) + sizes.num_classes),
        state_bytes=state_bytes([*hidden, *heads], [hidden[layer], head]),
    )


TECHNIQUE = Technique(
    name="mono-forward",
    extension_point="training.learning_rule",
    rule=rule,
    gains="A step keeps and updates one layer, and no gradient crosses a layer.",
    costs="Layers learn in turn, so the data passes once for every layer, through all layers below it.",
    claims=("gong-2025",),
)
