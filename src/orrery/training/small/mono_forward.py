"""Mono-Forward: every layer has its own small readout and its own loss, and is trained before the next one starts.

Layer i makes a = relu(W x + b) and scores G = M a, one a class; the loss is the cross-entropy of G. Gradients of W and
M need x, a and G only: nothing is passed back to the layer below. Classes are read from the last layer. [gong-2025]
"""

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.data import Dataset, Floats, Ints, Split
from orrery.training.small.learning import Adam, Settings, Trained, batches, until_no_better
from orrery.training.small.network import Layer, accuracy_frac, affine_gradients, cross_entropy, layers, relu


def train(data: Dataset, settings: Settings) -> Trained:
    """Layer by layer, each until its own validation loss no longer improves."""
    network = layers((data.train.rows.shape[1], *settings.hidden), settings.seed, "mono-forward")
    readout = stream(settings.seed, "small/mono-forward/readout")
    parts, losses, accuracy = (data.train, data.validation, data.test), list[float](), 0.0
    for i, layer in enumerate(network):
        projection = readout.standard_normal((layer.biases.size, data.num_classes)) / np.sqrt(layer.biases.size)
        losses += _train_layer(layer, projection, parts[0], parts[1], settings, f"mono-forward/{i}")
        parts = tuple(Split(rows=relu(layer(p.rows)), labels=p.labels) for p in parts)
        accuracy = accuracy_frac(parts[2].rows @ projection, data.test.labels)
    return Trained(accuracy_frac=accuracy, passes=len(losses), validation_losses=tuple(losses))


def local_gradients(layer: Layer, projection: Floats, inputs: Floats, labels: Ints) -> tuple[float, list[Floats]]:
    """The local loss, and its gradient for the layer's weights, its biases and its projection."""
    active = relu(layer(inputs))
    loss, scores = cross_entropy(active @ projection, labels)
    outgoing = (scores @ projection.T) * (active > 0.0)
    return loss, [*affine_gradients(inputs, outgoing), active.T @ scores]


def _train_layer(
    layer: Layer, projection: Floats, train: Split, validation: Split, settings: Settings, name: str
) -> list[float]:
    arrays = [*layer, projection]
    adam = Adam(arrays, settings.learning_rate_ratio)

    def one_pass(passed: int) -> float:
        for inputs, labels in batches(train, settings, name, passed):
            adam.step(local_gradients(layer, projection, inputs, labels)[1])
        return cross_entropy(relu(layer(validation.rows)) @ projection, validation.labels)[0]

    return until_no_better(one_pass, arrays, settings)
