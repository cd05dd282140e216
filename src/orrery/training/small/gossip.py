"""Networks that train apart and average with their neighbours on a ring, with and without keeping their variance.

The mean of k networks that have nothing to do with each other has a k-th of the variance of each: its activations
shrink layer by layer, and so do gradients. Scaled back,

    W = mean W_i        W <- mean(W) + (W - mean(W)) sqrt(mean of var(W_i) / var(W))

for each layer's matrix, it has theirs; among networks that agree the factor is one. That the variance aimed at is the
averaged networks' own, and not that of a first draw, is assumed: later it lets weights grow as training asks.
"""

from dataclasses import dataclass

import numpy as np

from orrery.training.small.data import Floats
from orrery.training.small.workers import LEARNING_RATE, Workers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gossip:
    """By step, from the start on: mean loss over that of own starts, and mean spread of weights over theirs."""

    losses_ratio: Floats
    spreads_ratio: Floats


def gossip(problem: Workers, *, steps: int, every: int, keeps_variance: bool, shares_start: bool) -> Gossip:
    """Every worker's own steps, with a mean over both neighbours after each ``every`` of them; 0: never."""
    names = ["gossip" if shares_start else f"gossip/{worker}" for worker in range(problem.num_workers)]
    x = np.array([problem.drawn(name) for name in names])
    loss, spread = _loss(problem, x), _spread(problem, x)
    losses, spreads = [1.0], [1.0]
    for step in range(steps):
        if every and step % every == 0:
            x = _averaged(problem, x, keeps_variance)
        x -= LEARNING_RATE * np.array([problem.gradient(row, worker, step) for worker, row in enumerate(x)])
        losses.append(_loss(problem, x) / loss)
        spreads.append(_spread(problem, x) / spread)
    return Gossip(losses_ratio=np.array(losses), spreads_ratio=np.array(spreads))


def _averaged(problem: Workers, x: Floats, keeps_variance: bool) -> Floats:
    near = np.array([x, np.roll(x, 1, axis=0), np.roll(x, -1, axis=0)])
    joined: Floats = near.mean(axis=0)
    if keeps_variance:
        for part in matrices(problem):
            joined[:, part] = scaled_to(joined[:, part], near[:, :, part].var(axis=2).mean(axis=0))
    return joined


def matrices(problem: Workers) -> list[slice]:
    """Where each layer's matrix lies in the vector; biases, which start at zero, are left out."""
    ends = np.cumsum([int(np.prod(shape)) for shape in problem.shapes]).tolist()
    starts = [0, *ends[:-1]]
    shapes = zip(starts, ends, problem.shapes, strict=True)
    return [slice(start, end) for start, end, shape in shapes if len(shape) == 2]


def scaled_to(rows: Floats, variances: Floats) -> Floats:
    """Each row about its mean, with that variance."""
    centre = rows.mean(axis=1, keepdims=True)
    own = np.maximum(rows.var(axis=1), np.finfo(np.float64).tiny)
    return centre + (rows - centre) * np.sqrt(variances / own)[:, None]


def _loss(problem: Workers, x: Floats) -> float:
    return float(np.mean([problem.loss(row) for row in x]))


def _spread(problem: Workers, x: Floats) -> float:
    """Standard deviation of the matrices' weights, in the mean over layers and workers."""
    return float(np.mean([x[:, part].std(axis=1).mean() for part in matrices(problem)]))
