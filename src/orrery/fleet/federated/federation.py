"""Clients of unequal speed and unlike data, and one linear classifier that they train together.

A client's local step is one step of gradient descent on a batch of its own points and takes its own time. A schedule
(``fleet.federated``) says how many steps each client takes, when the server listens, and how it weighs what comes.
"""

from dataclasses import dataclass

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.data import Dataset, Floats, Ints, Split, clusters
from orrery.training.small.network import accuracy_frac

FAVOURED_FRAC = 0.9
"""Share of a client's points that are of the classes which are its own, where classes are not shared."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The points of a client: a part of each of ``least`` to ``most`` drawn classes, beside others with them; with
    none, nine tenths of its points are of the classes that are its own."""

    least: int = 0
    most: int = 0

    def parts(self, train: Split, num_classes: int, num_clients: int, seed: int) -> tuple[Split, ...]:
        """The points of each client; every point has one owner."""
        draw = stream(seed, "federated/parts")
        owner = (
            self._shared(train, num_classes, num_clients, draw) if self.least else _mostly_own(train, num_clients, draw)
        )
        return tuple(Split(rows=train.rows[owner == i], labels=train.labels[owner == i]) for i in range(num_clients))

    def _shared(self, train: Split, num_classes: int, num_clients: int, draw: np.random.Generator) -> Ints:
        """Owners where every class has a client, and a class's holders have normally drawn parts of it."""
        held = np.zeros((num_clients, num_classes), dtype=bool)
        while not held.any(axis=0).all():
            held[:] = False
            for mine in held:
                mine[draw.permutation(num_classes)[: draw.integers(self.least, self.most + 1)]] = True
        owner = np.zeros(train.labels.size, dtype=np.int64)
        for label in range(num_classes):
            holders, points = np.flatnonzero(held[:, label]), np.flatnonzero(train.labels == label)
            parts = np.abs(draw.normal(10.0, 3.0, holders.size))
            ends = np.rint(np.cumsum(parts) / parts.sum() * points.size).astype(np.int64)
            owner[points] = np.repeat(holders, np.diff(ends, prepend=0))
        return owner


OWN = Holdings()


def federation(
    step_s: tuple[float, ...],
    *,
    run_s: float,
    learning_ratio: float = 0.02,
    batch: int = 16,
    num_classes: int = 0,
    holdings: Holdings = OWN,
    seed: int = 0,
) -> Federation:
    """Clusters of points, one a class (0: as many as clients, and four at least), shared out to clients."""
    data = clusters(num_classes=num_classes or max(4, len(step_s)), per_class=1, seed=seed)
    parts = holdings.parts(data.train, data.num_classes, len(step_s), seed)
    return Federation(
        data=data, parts=parts, step_s=step_s, learning_ratio=learning_ratio, batch=batch, run_s=run_s, seed=seed
    )


def _mostly_own(train: Split, num_clients: int, draw: np.random.Generator) -> Ints:
    """Owners by class in turn, but for a tenth of the points, which go to anyone."""
    owner = train.labels % num_clients
    strays = draw.random(owner.size) > FAVOURED_FRAC
    owner[strays] = draw.integers(0, num_clients, int(strays.sum()))
    return owner


def staleness_weight(num_behind: int, power: float) -> float:
    """How much an update counts whose start lies so many updates of the server back. [xie-2019]"""
    return (1.0 + num_behind) ** -power
