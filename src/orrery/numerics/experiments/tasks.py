"""Tasks to learn, drawn afresh for every batch, so that nothing can be learnt by heart.

A task is fixed by a seed (its teacher, its text's statistics); batches come from a generator of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.labelled_points import labelled_points
from orrery.numerics.experiments.losses import Targets, cross_entropy, squared_error
from orrery.numerics.learning.linear import Array

MAX_VOCABULARY = 4096
"""Different tokens of a text that a small decoder learns."""

MIN_PASSAGES = 16
"""Passages that a text has at least, side by side."""

Loss = Callable[[Array, Targets], tuple[float, Array]]
Batch = tuple[Array, Targets]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Inputs with what is wanted of them, and the loss that compares."""

    draw: Callable[[int, np.random.Generator], Batch]  # so many points
    loss: Loss
    least_loss: float  # of the best possible answer, in the loss's own unit


def regression(seed: int, *, num_inputs: int = 64, num_outputs: int = 16, spread: float = 1.0) -> Task:
    """Answers of a random two-layer teacher to inputs whose features differ widely in size.

    ``spread`` is the standard deviation of the logarithm of a feature's size: a few features are much larger than the
    rest, as in the activations of language models.
    """
    rng = np.random.default_rng([seed, 1])
    sizes = np.exp(spread * rng.standard_normal(num_inputs))
    sizes /= np.sqrt(np.mean(sizes**2))
    first = rng.standard_normal((2 * num_inputs, num_inputs)) / np.sqrt(num_inputs)
    second = rng.standard_normal((num_outputs, 2 * num_inputs)) * 2.0 / np.sqrt(2 * num_inputs)

    def draw(points: int, rng: np.random.Generator) -> Batch:
        x = rng.standard_normal((points, num_inputs)) * sizes
        return x.astype(np.float32), (np.tanh(2.0 * x @ first.T) @ second.T).astype(np.float32)

    return Task(draw=draw, loss=squared_error, least_loss=0.0)


def classification(seed: int, *, num_inputs: int = 32, num_classes: int = 16, num_clusters: int = 4) -> Task:
    """Which class a point of overlapping normal clusters belongs to; each class has several clusters."""
    rng = np.random.default_rng([seed, 2])
    centres = rng.standard_normal((num_classes * num_clusters, num_inputs))
    sizes = np.exp(rng.standard_normal(num_inputs))

    def draw(points: int, rng: np.random.Generator) -> Batch:
        which = rng.integers(len(centres), size=points)
        x = (centres[which] + 0.8 * rng.standard_normal((points, num_inputs))) * sizes
        return x.astype(np.float32), which % num_classes

    return Task(draw=draw, loss=cross_entropy, least_loss=0.0)


def text(seed: int, *, vocabulary: int = 32, tokens: int = 32, concentration: float = 0.1) -> Task:
    """The next token of a second-order Markov chain with random transitions; few followers are likely.

    The least loss is the chain's entropy rate, taken over the pairs that long texts visit.
    """
    rng = np.random.default_rng([seed, 3])
    shares = rng.dirichlet(np.full(vocabulary, concentration), size=(vocabulary, vocabulary))
    upto = np.cumsum(shares, axis=-1)
    surprise = -np.sum(shares * np.log(np.maximum(shares, 1e-300)), axis=-1)

    def walk(texts: int, length: int, rng: np.random.Generator) -> np.ndarray:
        found = rng.integers(vocabulary, size=(texts, length))
        for t in range(2, length):
            at = upto[found[:, t - 2], found[:, t - 1]]
            found[:, t] = np.minimum((at < rng.random((texts, 1))).sum(axis=-1), vocabulary - 1)
        return found

    def draw(points: int, rng: np.random.Generator) -> Batch:
        found = walk(points, tokens + 9, rng)[:, 8:]  # the first tokens only start the chain
        return found[:, :-1].astype(np.float32), found[:, 1:]

    long = walk(256, 64, rng)[:, 16:]
    return Task(draw=draw, loss=cross_entropy, least_loss=float(surprise[long[:, :-1], long[:, 1:]].mean()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """A task to learn by and one to judge by, and the widths of inputs and answers."""

    learned: Task
    judged: Task
    num_inputs: int
    num_outputs: int


def own_points(data: Mapping[str, Any], seed: int, multiple: int = 1) -> Lessons:
    """The user's labelled points, a quarter of them held out to judge by.

    Features that are always zero and classes that never come fill both up to a multiple, as blocks of formats need.
    """
    rows, labels = labelled_points(data)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % multiple)))
    order = np.random.default_rng([seed, 2]).permutation(len(rows))
    cut = 3 * len(rows) // 4
    train, held = (_among(rows.astype(np.float32), labels, part) for part in (order[:cut], order[cut:]))
    classes = int(labels.max()) + 1
    return Lessons(learned=train, judged=held, num_inputs=rows.shape[1], num_outputs=classes + -classes % multiple)


def own_text(data: Mapping[str, Any], tokens: int) -> Lessons:
    """The user's text as whole numbers from 0, in passages of so many tokens; its last quarter is held out."""
    found = np.asarray(data.get("tokens", np.zeros(0)))
    is_long = found.ndim == 1 and len(found) >= MIN_PASSAGES * (tokens + 1)
    if not is_long or not (np.isin(found, np.arange(MAX_VOCABULARY))).all():
        raise ScenarioError(
            f"data: got tokens {found.shape}; write an .npz with whole numbers from 0 to "
            f"{MAX_VOCABULARY - 1} in one row, {MIN_PASSAGES * (tokens + 1)} or more."
        )
    cut, vocabulary = 3 * len(found) // 4, int(found.max()) + 1
    learned, judged = (_passages(part, tokens) for part in (found[:cut], found[cut:]))
    return Lessons(learned=learned, judged=judged, num_inputs=vocabulary, num_outputs=vocabulary)


def _passages(text: Targets, tokens: int) -> Task:
    def draw(points: int, rng: np.random.Generator) -> Batch:
        begin = rng.integers(len(text) - tokens, size=(points, 1))
        found = text[begin + np.arange(tokens + 1)].astype(np.int64)
        return found[:, :-1].astype(np.float32), found[:, 1:]

    return Task(draw=draw, loss=cross_entropy, least_loss=0.0)


def _among(rows: Array, labels: Targets, part: Targets) -> Task:
    def draw(points: int, rng: np.random.Generator) -> Batch:
        which = rng.choice(part, points)
        return rows[which], labels[which]

    return Task(draw=draw, loss=cross_entropy, least_loss=0.0)
