"""Layer-wise full-parameter training: one group of layers moves in each step, all the others stand still.

The gradient still passes the whole network, but only the active group's is kept, and only its moments are in use. The
order of the groups is fixed before training: from the input up, from the output down, or drawn once. The learning rate
falls once a cycle, when every group has had its turn. [liu-2024]
"""

from collections.abc import Iterator
from itertools import count

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.training.small.backpropagation import gradients
from orrery.training.small.data import Floats, Ints, Split, clusters
from orrery.training.small.learning import Adam, Settings, batches
from orrery.training.small.network import layers

ORDERS = ("bottom-up", "top-down", "random")

HIDDEN = (32, 32, 32, 32, 32)
"""Six layers in all, so up to six groups."""

LEARNING_RATE, BATCH = 5e-3, 64


def layerwise_descent(order: str, groups: int, steps: int, seed: int, hidden: tuple[int, ...] = HIDDEN) -> Floats:
    """The loss of every step's batch, before the step. ``groups`` = 1 trains all layers in every step.

    The last group of a cycle that does not come out even is smaller.
    """
    num_layers = len(hidden) + 1
    if not 1 <= groups <= num_layers or steps < 1:
        raise ScenarioError(
            f"layerwise descent: {groups} groups, {steps} steps; write 1 to {num_layers} groups, steps >= 1."
        )
    data = clusters(seed=seed)
    network = layers((data.train.rows.shape[1], *hidden, data.num_classes), seed, "layerwise")
    members: list[list[int]] = [part.tolist() for part in np.array_split(np.arange(num_layers), groups)]
    optimizers = [Adam([array for i in group for array in network[i]], LEARNING_RATE) for group in members]
    turns = _turns(order, groups, seed)
    losses = np.empty(steps)
    for step, (inputs, labels) in zip(range(steps), _endless(data.train, seed), strict=False):
        cycle, place = divmod(step, groups)
        active = int(turns[place])
        losses[step], found = gradients(network, inputs, labels)
        optimizer = optimizers[active]
        optimizer.learning_rate = LEARNING_RATE * (1.0 - cycle * groups / steps)
        optimizer.step([g for i in members[active] for g in found[2 * i : 2 * i + 2]])
    return losses


def _turns(order: str, groups: int, seed: int) -> Ints:
    """Which group moves at each place of a cycle."""
    if order not in ORDERS:
        raise ScenarioError(f"layerwise descent: order = {order!r}; write one of {', '.join(ORDERS)}.")
    upwards = np.arange(groups)
    if order == "random":
        return stream(seed, "small/layerwise/order").permutation(upwards)
    return upwards if order == "bottom-up" else upwards[::-1]


def _endless(train: Split, seed: int) -> Iterator[tuple[Floats, Ints]]:
    """Batches of one pass after the other."""
    settings = Settings(hidden=HIDDEN, batch=BATCH, seed=seed)
    for passed in count():
        yield from batches(train, settings, "layerwise", passed)
