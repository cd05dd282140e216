"""Forward-Forward: two forward passes, one with the right label in the input and one with a wrong one.

The goodness of a layer is the mean square of its activations. A layer is trained to have it above a threshold for the
right label and below it for the wrong one: loss = softplus(threshold - right) + softplus(wrong - threshold). What goes
up is divided by its length, so that the next layer cannot read the goodness. All layers learn in every pass. A class is
read by trying every label and adding up the goodness of all layers. [hinton-2022]
"""

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.data import Dataset, Floats, Ints, Split
from orrery.training.small.learning import Adam, Settings, Trained, batches, until_no_better
from orrery.training.small.network import Layer, affine_gradients, layers, one_hot, relu

THRESHOLD = 2.0
LABEL_SCALE = 3.0
"""Scale of the label in the input, whose other entries have a deviation of one."""

SHORTEST = 1e-8


def train(data: Dataset, settings: Settings) -> Trained:
    """Until the share of wrong answers on the validation set no longer falls."""
    width = data.train.rows.shape[1] + data.num_classes
    network = layers((width, *settings.hidden), settings.seed, "forward-forward")
    arrays = [array for layer in network for array in layer]
    adam = Adam(arrays, settings.learning_rate_ratio)

    def one_pass(passed: int) -> float:
        wrong = stream(settings.seed, f"small/forward-forward/wrong/{passed}")
        for inputs, labels in batches(data.train, settings, "forward-forward", passed):
            others = (labels + wrong.integers(1, data.num_classes, labels.size)) % data.num_classes
            both = (labelled(inputs, labels, data.num_classes), labelled(inputs, others, data.num_classes))
            adam.step(gradients(network, *both)[1])
        return 1.0 - _accuracy_frac(network, data.validation, data.num_classes)

    losses = until_no_better(one_pass, arrays, settings)
    accuracy = _accuracy_frac(network, data.test, data.num_classes)
    return Trained(accuracy_frac=accuracy, passes=len(losses), validation_losses=tuple(losses))


def labelled(inputs: Floats, labels: Ints, num_classes: int) -> Floats:
    """Inputs with a label beside them."""
    return np.concatenate([LABEL_SCALE * one_hot(labels, num_classes), inputs], axis=1)


def gradients(network: list[Layer], right: Floats, wrong: Floats) -> tuple[float, list[Floats]]:
    """The sum of all layers' losses, and each layer's gradient of its own: none crosses a layer."""
    total, found = 0.0, list[Floats]()
    sign = np.repeat([1.0, -1.0], [len(right), len(wrong)])
    inputs = np.concatenate([right, wrong])
    for layer in network:
        inputs = _unit(inputs)
        active = relu(layer(inputs))
        margin = sign * (THRESHOLD - (active * active).mean(axis=1))
        total += float(np.logaddexp(0.0, margin).sum()) / len(right)
        slope = -sign / (1.0 + np.exp(-margin)) / len(right)
        found += affine_gradients(inputs, slope[:, None] * 2.0 / active.shape[1] * active)
        inputs = active
    return total, found


def _unit(rows: Floats) -> Floats:
    """Rows of mean square one, whatever their length was."""
    return rows / np.maximum(np.sqrt((rows * rows).mean(axis=1, keepdims=True)), SHORTEST)


def _accuracy_frac(network: list[Layer], part: Split, num_classes: int) -> float:
    """Every label is tried; the one with the most goodness is taken."""
    scores = np.stack(
        [
            _goodness(network, labelled(part.rows, np.full_like(part.labels, c), num_classes))
            for c in range(num_classes)
        ],
        axis=1,
    )
    return float((scores.argmax(axis=1) == part.labels).mean())


def _goodness(network: list[Layer], inputs: Floats) -> Floats:
    total = np.zeros(len(inputs))
    for layer in network:
        inputs = relu(layer(_unit(inputs)))
        total += (inputs * inputs).mean(axis=1)
    return total
