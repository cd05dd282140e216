"""Layerwise AdamW that runs: it learns in every order, and with one group it is AdamW."""

from itertools import pairwise

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.execution.offload.layerwise_adam import LayerwiseAdamW

ORDERS = ("bottom-up", "top-down", "random")


def network(seed: int = 0):
    """A regression of three layers: weights, inputs and a teacher's answers."""
    draw = stream(seed, "test/network")
    sizes = (6, 16, 16, 1)
    weights = [draw.standard_normal((a, b)) / np.sqrt(a) for a, b in pairwise(sizes)]
    teacher = [draw.standard_normal((a, b)) / np.sqrt(a) for a, b in pairwise(sizes)]
    inputs = draw.standard_normal((128, 6))
    return weights, inputs, answer(teacher, inputs)[-1]


def answer(weights, inputs):
    """What every layer makes; tanh between layers."""
    made = [inputs]
    for i, w in enumerate(weights):
        out = made[-1] @ w
        made.append(np.tanh(out) if i < len(weights) - 1 else out)
    return made


def gradients(weights, inputs, requested):
    """Mean squared error and its gradients."""
    made = answer(weights, inputs)
    error = made[-1] - requested
    back = 2.0 * error / error.size
    found = []
    for i in reversed(range(len(weights))):
        found.append(made[i].T @ back)
        back = (back @ weights[i].T) * (1.0 - made[i] ** 2)
    return float((error**2).mean()), found[::-1]


@pytest.mark.parametrize("order", ORDERS)
def test_it_learns_in_every_order(order):
    weights, inputs, requested = network()
    optimizer = LayerwiseAdamW(3, order)
    first, _ = gradients(weights, inputs, requested)
    for _ in range(1500):
        group = optimizer.active
        _, found = gradients(weights, inputs, requested)
        optimizer.step([weights[group]], [found[group]], rate=0.02 / (1 + optimizer.rounds / 200))
    last, _ = gradients(weights, inputs, requested)
    assert last < 0.1 * first


def test_only_the_active_group_moves_and_turns_go_round():
    weights, inputs, requested = network()
    optimizer = LayerwiseAdamW(3, "top-down")
    turns = []
    for _ in range(6):
        before = [w.copy() for w in weights]
        group = optimizer.active
        turns.append(group)
        optimizer.step([weights[group]], [gradients(weights, inputs, requested)[1][group]], rate=0.01)
        assert [bool((a != b).any()) for a, b in zip(before, weights, strict=True)] == [i == group for i in range(3)]
    assert turns == [2, 1, 0, 2, 1, 0]
    assert optimizer.rounds == 2


def test_a_random_order_is_drawn_once_and_visits_all():
    optimizer = LayerwiseAdamW(8, "random", seed=3)
    turns = []
    for _ in range(16):
        turns.append(optimizer.active)
        optimizer.step([np.zeros(1)], [np.ones(1)], rate=0.1)
    assert sorted(turns[:8]) == list(range(8))
    assert turns[:8] == turns[8:]
    assert turns[:8] != list(range(8))


def test_one_group_is_adamw():
    draw = stream(1, "test/adamw")
    start, steps = draw.standard_normal(5), draw.standard_normal((20, 5))
    ours, theirs = start.copy(), start.copy()
    optimizer = LayerwiseAdamW(1, weight_decay=0.1)
    m, v = np.zeros(5), np.zeros(5)
    for t, g in enumerate(steps, start=1):
        optimizer.step([ours], [g], rate=0.05)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        theirs = theirs - 0.05 * ((m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + 0.1 * theirs)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_no_groups_are_refused():
    with pytest.raises(ScenarioError, match="num_groups = 0"):
        LayerwiseAdamW(0)
