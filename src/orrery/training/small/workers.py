"""Workers that train one small network on their own parts of the data; its weights are one vector."""

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.backpropagation import gradients
from orrery.training.small.data import Dataset, Floats, clusters
from orrery.training.small.network import Layer, accuracy_frac, layers, relu

HIDDEN, BATCH, LEARNING_RATE = (24,), 32, 0.1


class Workers:
    """A small network as one vector, and every worker's own part of the data."""

    def __init__(self, num_workers: int, seed: int, data: Dataset | None = None) -> None:
        self.data = data or clusters(count=960, seed=seed)
        self.seed, self.num_workers = seed, num_workers
        self.widths = (self.data.train.rows.shape[1], *HIDDEN, self.data.num_classes)
        self.shapes = [array.shape for layer in layers(self.widths, seed, "stale") for array in layer]
        self.start = self.drawn("stale")
        order = stream(seed, "small/stale/parts").permutation(len(self.data.train.labels))
        self.parts = np.array_split(order, num_workers)

    def drawn(self, name: str) -> Floats:
        """First weights of a network of that name, as one vector."""
        return np.concatenate([array.ravel() for layer in layers(self.widths, self.seed, name) for array in layer])

    def network(self, vector: Floats) -> list[Layer]:
        """Views of the vector as layers."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1].tolist()
        arrays = [part.reshape(shape) for part, shape in zip(np.split(vector, ends), self.shapes, strict=True)]
        return [Layer(*pair) for pair in zip(arrays[::2], arrays[1::2], strict=True)]

    def gradient(self, vector: Floats, worker: int, step: int) -> Floats:
        """Gradient of the loss on the worker's batch of that step."""
        draw = stream(self.seed, f"small/stale/{worker}/{step}")
        rows = draw.choice(self.parts[worker], BATCH)
        found = gradients(self.network(vector), self.data.train.rows[rows], self.data.train.labels[rows])[1]
        return np.concatenate([g.ravel() for g in found])

    def loss(self, vector: Floats) -> float:
        """On the whole training set."""
        return gradients(self.network(vector), self.data.train.rows, self.data.train.labels)[0]

    def right_frac(self, vector: Floats) -> float:
        """Share of the test points whose class it finds."""
        rows = self.data.test.rows
        *hidden, last = self.network(vector)
        for layer in hidden:
            rows = relu(layer(rows))
        return accuracy_frac(last(rows), self.data.test.labels)
