"""Forward-Forward: right and wrong labels go up together, and every layer learns to tell them apart by itself."""

from collections.abc import Iterator

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.kernels.ops import Elementwise, Gemm
from orrery.training.small.work import (
    WORD_BYTES,
    Sizes,
    StepWork,
    forward,
    moved,
    readout,
    state_bytes,
    update,
    weight_gradient,
)

NORMALISATION_WORDS, GOODNESS_WORDS = 3.0, 1.0
"""Read for the length, read and written to divide by it; read for the sum of squares."""


def rule(sizes: Sizes, layer: int, knobs: NoKnobs) -> StepWork:
    """Twice the batch through every layer, each with its own gradient; then a classifier on a third, neutral pass.

    All layers are one unit, whatever ``layer`` says. Every layer has its own update.
    """
    del layer, knobs
    n, hidden, head = sizes.batch, sizes.hidden_layers, (sum(sizes.hidden[1:]) or sizes.hidden[0], sizes.num_classes)
    ops = [op for shape in hidden for op in _layer(2 * n, shape)]
    ops += [op for shape in hidden for op in (*forward(n, shape), moved(NORMALISATION_WORDS * n * shape[1]))]
    ops += [*readout(n, head), weight_gradient(n, head), update([head])]
    widest = max(sum(shape) for shape in hidden)
    return StepWork(
        ops=tuple(ops),
        activation_bytes=WORD_BYTES * 2 * n * widest,
        state_bytes=state_bytes([*hidden, head], [*hidden, head]),
    )


def _layer(points: int, shape: tuple[int, int]) -> Iterator[Gemm | Elementwise]:
    """Both passes of a layer, its goodness and its slope, the gradient, the update, and what goes up."""
    yield from forward(points, shape)
    yield moved(GOODNESS_WORDS * points * shape[1])
    yield moved(2.0 * points * shape[1])
    yield weight_gradient(points, shape)
    yield update([shape])
    yield moved(NORMALISATION_WORDS * points * shape[1])


TECHNIQUE = Technique(
    name="forward-forward",
    extension_point="training.learning_rule",
    rule=rule,
    gains="No gradient crosses a layer, so a layer's activations can go as soon as it has learnt from them.",
    costs="Every point goes up twice and once more to be classified, in many small kernels; it takes more passes.",
    claims=("hinton-2022",),
)
