"""Clients of unequal speed and unlike data, and one linear classifier that they train together.

A client's local step is one step of gradient descent on a batch of its own points and takes its own time. A schedule
(``fleet.federated``) says how many steps each client takes, when the server listens, and how it weighs what comes.
"""

from dataclasses import dataclass

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.data import Dataset, Floats, Split, clusters
from orrery.training.small.network import accuracy_frac

FAVOURED_FRAC = 0.9
"""Share of a client's points that are of the classes which it mostly has."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Federation:
    """The clients' data and speeds, and how they learn."""

    data: Dataset
    parts: tuple[Split, ...]  # of each client
    step_s: tuple[float, ...]  # of each client, one local step
    learning_ratio: float
    batch: int
    run_s: float  # after which the server stops listening
    seed: int = 0

    @property
    def num_clients(self) -> int:
        """Number of clients in the federation."""
        return len(self.parts)

    def start(self) -> Floats:
        """Weights of all classes, zero."""
        return np.zeros((self.data.train.rows.shape[1], self.data.num_classes))

    def trained(self, client: int, weights: Floats, num_steps: int, draw: np.random.Generator) -> Floats:
        """The weights after so many local steps."""
        part, ones = self.parts[client], np.eye(self.data.num_classes)
        for picked in draw.integers(0, len(part.labels), (num_steps, self.batch)):
            rows = part.rows[picked]
            chances = np.exp(rows @ weights)
            chances /= chances.sum(axis=1, keepdims=True)
            weights = weights - self.learning_ratio / self.batch * (rows.T @ (chances - ones[part.labels[picked]]))
        return weights

    def accuracy(self, weights: Floats) -> float:
        """On points of all classes that nobody trains on."""
        return accuracy_frac(self.data.test.rows @ weights, self.data.test.labels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Accuracy of the server's model over time."""

    time_s: Floats
    accuracy_frac: Floats

    def reached_s(self, target_frac: float) -> float:
        """When the model was first that good; infinite where never."""
        good = np.flatnonzero(self.accuracy_frac >= target_frac)
        return float(self.time_s[good[0]]) if good.size else float("inf")

    @property
    def final_frac(self) -> float:
        """Mean of the last tenth of the looks."""
        return float(self.accuracy_frac[-max(len(self.accuracy_frac) // 10, 1) :].mean())


def federation(
    step_s: tuple[float, ...], *, run_s: float, learning_ratio: float = 0.02, batch: int = 16, seed: int = 0
) -> Federation:
    """Clusters of points that each client sees with classes of its own, nine tenths of them."""
    data = clusters(num_classes=max(4, len(step_s)), per_class=1, seed=seed)
    draw = stream(seed, "federated/parts")
    owner = data.train.labels % len(step_s)
    strays = draw.random(owner.size) > FAVOURED_FRAC
    owner[strays] = draw.integers(0, len(step_s), int(strays.sum()))
    parts = tuple(
        Split(rows=data.train.rows[owner == i], labels=data.train.labels[owner == i]) for i in range(len(step_s))
    )
    return Federation(
        data=data, parts=parts, step_s=step_s, learning_ratio=learning_ratio, batch=batch, run_s=run_s, seed=seed
    )


def staleness_weight(num_behind: int, power: float) -> float:
    """How much an update counts whose start lies so many updates of the server back. [xie-2019]"""
    return (1.0 + num_behind) ** -power
