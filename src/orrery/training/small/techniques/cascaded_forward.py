"""Cascaded-Forward with random blocks: layers never learn, and a linear predictor on each does."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.training.small.work import (
    WORD_BYTES,
    Sizes,
    StepWork,
    forward,
    readout,
    state_bytes,
    update,
    weight_gradient,
)


def rule(sizes: Sizes, layer: int, knobs: NoKnobs) -> StepWork:
    """Forward up to the block, then its predictor's scores, gradient and update."""
    del knobs
    n, hidden = sizes.batch, sizes.hidden_layers
    heads = [(width, sizes.num_classes) for width in sizes.hidden]
    ops = [op for shape in hidden[: layer + 1] for op in forward(n, shape)]
    ops += [*readout(n, heads[layer]), weight_gradient(n, heads[layer]), update([heads[layer]])]
    return StepWork(
        ops=tuple(ops),
        activation_bytes=WORD_BYTES * n * sum(heads[layer]),
        state_bytes=state_bytes([*hidden, *heads], [heads[layer]]),
    )


TECHNIQUE = Technique(
    name="cascaded-forward",
    extension_point="training.learning_rule",
    rule=rule,
    gains="Only small predictors are trained, so gradients, moments and kept activations are next to nothing.",
    costs="Random features bound the accuracy, and the data passes once for every predictor.",
    claims=("zhao-2023",),
)
