"""Settings and report of a training run; Adam, batches, and stopping when validation no longer improves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.engine.streams import stream
from orrery.training.small.data import Floats, Ints, Split

ADAM_DECAYS, ADAM_FLOOR = (0.9, 0.999), 1e-8
"""Decay rates of both moments, and what keeps the division finite. [kingma-2015]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Training settings. One pass is the whole training set once, through whatever is being trained."""

    hidden: tuple[int, ...] = (48, 48)
    batch: int = 64
    learning_rate_ratio: float = 2e-3  # how far a weight moves in one step of Adam
    most_passes: int = 60  # of the whole network, or of each layer where layers train in turn
    patience_passes: int = 4
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Result of training; ``passes`` counts every pass over the data, of whichever layer."""

    accuracy_frac: float  # on the test set
    passes: int
    validation_losses: tuple[float, ...]  # one a pass, in order


class Adam:
    """First and second moments of a few arrays, which it moves in place. [kingma-2015]"""

    def __init__(self, arrays: Sequence[Floats], learning_rate: float) -> None:
        self.arrays, self.learning_rate, self.steps = arrays, learning_rate, 0
        self.moments = [(np.zeros_like(a), np.zeros_like(a)) for a in arrays]

    def step(self, gradients: Sequence[Floats]) -> None:
        """One update against the gradients."""
        self.steps += 1
        first, second = ADAM_DECAYS
        scale, short = self.learning_rate / (1.0 - first**self.steps), 1.0 - second**self.steps
        for array, (m, v), gradient in zip(self.arrays, self.moments, gradients, strict=True):
            m += (1.0 - first) * (gradient - m)
            v += (1.0 - second) * (gradient * gradient - v)
            array -= scale * m / (np.sqrt(v / short) + ADAM_FLOOR)


def batches(data: Split, settings: Settings, name: str, passed: int) -> Iterator[tuple[Floats, Ints]]:
    """The training set in a new order for every pass."""
    order = stream(settings.seed, f"small/{name}/{passed}").permutation(len(data.labels))
    for start in range(0, len(order), settings.batch):
        rows = order[start : start + settings.batch]
        yield data.rows[rows], data.labels[rows]


def until_no_better(one_pass: Callable[[int], float], arrays: Sequence[Floats], settings: Settings) -> list[float]:
    """Passes until the loss that ``one_pass`` returns has not improved for ``patience_passes``; all losses.

    The arrays are left as they were after the best pass.
    """
    losses: list[float] = []
    best = [array.copy() for array in arrays]
    for passed in range(settings.most_passes):
        losses.append(one_pass(passed))
        if losses[-1] == min(losses):
            best = [array.copy() for array in arrays]
        elif passed - int(np.argmin(losses)) >= settings.patience_passes:
            break
    for array, activations in zip(arrays, best, strict=True):
        array[...] = activations
    return losses
