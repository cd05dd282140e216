"""A multi-layer perceptron with ReLU, its loss, and the gradients of one layer: what all learning rules share."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.data import Floats, Ints


class Layer:
    """One affine map: weights (in, out) and biases (out), in this order where it is iterated over."""

    __slots__ = ("biases", "weights")

    def __init__(self, weights: Floats, biases: Floats) -> None:
        self.weights, self.biases = weights, biases

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.weights, self.biases))

    def __call__(self, inputs: Floats) -> Floats:
        """Before the activation."""
        return inputs @ self.weights + self.biases


def layers(widths: tuple[int, ...], seed: int, name: str) -> list[Layer]:
    """He-initialised layers between consecutive widths. [he-2015]"""
    draw = stream(seed, f"small/{name}")
    return [Layer(draw.standard_normal((a, b)) * np.sqrt(2.0 / a), np.zeros(b)) for a, b in pairwise(widths)]


def relu(x: Floats) -> Floats:
    """max(0, x)."""
    return np.maximum(x, 0.0)


def cross_entropy(logits: Floats, labels: Ints) -> tuple[float, Floats]:
    """Mean loss over the batch, and its gradient for the logits: (softmax - one hot) / batch."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_chances = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    gradient = np.exp(log_chances)
    gradient[rows, labels] -= 1.0
    return float(-log_chances[rows, labels].mean()), gradient / len(labels)


def affine_gradients(inputs: Floats, outgoing: Floats) -> list[Floats]:
    """Gradients of weights and biases, from a layer's inputs and the gradient of its outputs."""
    return [inputs.T @ outgoing, outgoing.sum(axis=0)]


def accuracy_frac(logits: Floats, labels: Ints) -> float:
    """Share of points whose largest logit is their class."""
    return float((logits.argmax(axis=1) == labels).mean())


def one_hot(labels: Ints, num_classes: int) -> Floats:
    """Rows of zeros with a one at the class."""
    return np.eye(num_classes)[labels]
