"""Cascaded-Forward with random blocks: the layers stay as drawn, and each has a linear predictor that is trained.

Predictors are trained one after the other, each by the cross-entropy of its own scores; their scores are added up.
[zhao-2023]
"""

import numpy as np

from orrery.training.small.data import Dataset, Floats, Ints, Split
from orrery.training.small.learning import Adam, Settings, Trained, batches, until_no_better
from orrery.training.small.network import Layer, accuracy_frac, affine_gradients, cross_entropy, layers, relu


def train(data: Dataset, settings: Settings) -> Trained:
    """Predictor by predictor, each until its own validation loss no longer improves."""
    blocks = layers((data.train.rows.shape[1], *settings.hidden), settings.seed, "cascaded-forward")
    parts, losses = (data.train, data.validation, data.test), list[float]()
    scores = np.zeros((len(data.test.labels), data.num_classes))
    for i, block in enumerate(blocks):
        parts = tuple(Split(rows=relu(block(p.rows)), labels=p.labels) for p in parts)
        predictor = Layer(np.zeros((block.biases.size, data.num_classes)), np.zeros(data.num_classes))
        losses += train_predictor(predictor, parts[0], parts[1], settings, f"cascaded-forward/{i}")
        scores += predictor(parts[2].rows)
    accuracy = accuracy_frac(scores, data.test.labels)
    return Trained(accuracy_frac=accuracy, passes=len(losses), validation_losses=tuple(losses))


def predictor_gradients(predictor: Layer, inputs: Floats, labels: Ints) -> tuple[float, list[Floats]]:
    """Loss and gradients of one linear predictor."""
    loss, outgoing = cross_entropy(predictor(inputs), labels)
    return loss, affine_gradients(inputs, outgoing)


def train_predictor(predictor: Layer, train: Split, validation: Split, settings: Settings, name: str) -> list[float]:
    """One linear predictor, in place; its validation losses. On the inputs themselves it is logistic regression."""
    adam = Adam([*predictor], settings.learning_rate_ratio)

    def one_pass(passed: int) -> float:
        for inputs, labels in batches(train, settings, name, passed):
            adam.step(predictor_gradients(predictor, inputs, labels)[1])
        return cross_entropy(predictor(validation.rows), validation.labels)[0]

    return until_no_better(one_pass, [*predictor], settings)
