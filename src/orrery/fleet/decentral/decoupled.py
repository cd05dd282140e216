"""Accelerated decentralised descent whose gradients and whose messages follow clocks of their own (DADAO).

Nodes hold x and five more vectors. Between events all six flow by one linear law; a node's own Poisson clock, once a
unit of time, makes it take a gradient step, and a clock shared by the edges, uniformly, makes two neighbours exchange.
With nu = mu / 2, chi1 and chi2 of the Laplacian of edges drawn uniformly (one over its least eigenvalue above zero, and
half the largest effective resistance of an edge), the edges' clock ticks sqrt(2 chi1 chi2) times a unit of time: both
rates keep the time to a solution at sqrt(L / mu) log(1 / error), whatever the graph. Nabli and Oyallon, arXiv
2208.00779.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, sqrt

import numpy as np

from orrery.engine.streams import stream
from orrery.fleet.decentral.compressor import Floats

TERMS = 10
"""Terms of the series of exp: the rest is below 1e-10 of a matrix whose rows sum to a quarter at most."""

STEPS, LOST = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02), 1e6
"""Step lengths of rounds that are tried, over one by L; and the error at which one is given up."""

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadratics:
    """f_i(x) = sum of a (x - b_i)^2 / 2 at each node, with the same steepness a along each coordinate."""

    steepness_ratio: Floats  # features; from mu to L
    targets_ratio: Floats  # nodes x features

    @property
    def condition(self) -> float:
        """L over mu."""
        return float(self.steepness_ratio.max() / self.steepness_ratio.min())

    def error_frac(self, x: Floats) -> float:
        """Mean squared distance of the nodes to the solution, over that of zero."""
        solution = self.targets_ratio.mean(axis=0)
        return float(((x - solution) ** 2).sum(axis=1).mean() / (solution**2).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Gradients and messages of all nodes until the error was small enough; infinite where it never was."""

    num_gradients: float
    num_messages: float


def quadratics(num_nodes: int, num_features: int, condition: float, seed: int) -> Quadratics:
    """Steepness from 1 to the condition number in even ratios, and normal targets."""
    targets = stream(seed, "decoupled/targets").standard_normal((num_nodes, num_features))
    return Quadratics(steepness_ratio=np.geomspace(1.0, condition, num_features), targets_ratio=targets)


def laplacian(edges: Edges, num_nodes: int) -> Floats:
    """The Laplacian of edges that are drawn uniformly: each weighs one over their number."""
    found = np.zeros((num_nodes, num_nodes))
    for i, j in edges:
        found[[i, j], [i, j]] += 1.0 / len(edges)
        found[[i, j], [j, i]] -= 1.0 / len(edges)
    return found


def chis(edges: Edges, num_nodes: int) -> tuple[float, float]:
    """One over the least eigenvalue above zero, and half the largest effective resistance of an edge."""
    matrix = laplacian(edges, num_nodes)
    inverse = np.linalg.pinv(matrix)
    resistance = max(float(inverse[i, i] + inverse[j, j] - 2.0 * inverse[i, j]) for i, j in edges)
    return 1.0 / float(np.linalg.eigvalsh(matrix)[1]), 0.5 * resistance


def flow(nu: float, steepest: float) -> Floats:
    """The law between events, for (x, x', y, y', z, z')."""
    ratio = sqrt(nu / steepest)
    eta, alpha, theta = ratio / 8.0, ratio / 4.0, 0.5 / ratio
    return np.array(
        [
            [-eta, eta, 0.0, 0.0, 0.0, 0.0],
            [eta, -eta, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, -alpha, alpha, 0.0, 0.0],
            [0.0, -theta * nu, -theta, 0.0, -theta, 0.0],
            [0.0, 0.0, 0.0, 0.0, -alpha, alpha],
            [0.0, 0.0, 0.0, 0.0, alpha / 2.0, -alpha / 2.0],
        ]
    )


def exponential(matrix: Floats) -> Floats:
    """exp of a small matrix: its series where it is short, squared as often as it was halved."""
    size = float(np.abs(matrix).sum(axis=1).max())
    halvings = max(0, ceil(log2(size)) + 2) if size > 0.0 else 0
    short, one = matrix / 2.0**halvings, np.eye(len(matrix))
    found = one
    for term in range(TERMS, 0, -1):
        found = one + short @ found / term
    for _ in range(halvings):
        found = found @ found
    return found


class _Nodes:
    """The six vectors of every node, each as of the node's own last event."""

    def __init__(self, of: Quadratics, chi1: float, ticks: float) -> None:
        self.of = of
        least, most = float(of.steepness_ratio.min()), float(of.steepness_ratio.max())
        self.nu = least / 2.0
        ratio = sqrt(self.nu / most)
        self.law = flow(self.nu, most)
        self.moves = np.array([-0.25 / most, -0.25 / sqrt(most * self.nu), 1.0 + 0.25 * ratio])
        self.mixes = np.array([0.5, 2.0 * chi1 / ticks / ratio])
        self.state = np.zeros((len(of.targets_ratio), 6, of.targets_ratio.shape[1]))
        self.time = np.zeros(len(of.targets_ratio))

    def _to(self, node: int, time: float) -> Floats:
        """The node's vectors, brought up to the time."""
        self.state[node] = exponential(self.law * (time - self.time[node])) @ self.state[node]
        self.time[node] = time
        return self.state[node]

    def take_gradient(self, node: int, time: float) -> None:
        """One gradient of the node's own function."""
        own = self._to(node, time)
        pull = self.of.steepness_ratio * (own[0] - self.of.targets_ratio[node]) - self.nu * own[0] - own[3]
        own[[0, 1, 3]] += self.moves[:, None] * pull

    def exchange(self, first: int, second: int, time: float) -> None:
        """A message each way between two neighbours."""
        a, b = self._to(first, time), self._to(second, time)
        apart = (a[2] + a[4]) - (b[2] + b[4])
        a[4:] -= self.mixes[:, None] * apart
        b[4:] += self.mixes[:, None] * apart


def decoupled(of: Quadratics, edges: Edges, *, most_time: float, target_frac: float, seed: int) -> Counted:
    """Events by both clocks until the error is small enough, looked at once every unit of time."""
    count = len(of.targets_ratio)
    chi1, chi2 = chis(edges, count)
    ticks = sqrt(2.0 * chi1 * chi2)
    nodes, draw = _Nodes(of, chi1, ticks), stream(seed, "decoupled/clocks")
    time, gradients, messages, looked = 0.0, 0, 0, 1.0
    while time < most_time:
        time += draw.exponential(1.0 / (count + ticks))
        if draw.random() * (count + ticks) < count:
            nodes.take_gradient(int(draw.integers(count)), time)
            gradients += 1
        else:
            nodes.exchange(*edges[int(draw.integers(len(edges)))], time)
            messages += 2
        if time >= looked:
            looked = time + 1.0
            if of.error_frac(nodes.state[:, 0]) <= target_frac:
                return Counted(num_gradients=gradients, num_messages=messages)
    return Counted(num_gradients=np.inf, num_messages=np.inf)


def tracking(of: Quadratics, edges: Edges, *, most_rounds: int, target_frac: float) -> Counted:
    """Rounds of all nodes without acceleration or clocks (gradient tracking), at the best of a few step lengths."""
    return min((_tracked(of, edges, step, most_rounds, target_frac) for step in STEPS), key=lambda c: c.num_gradients)


def _tracked(of: Quadratics, edges: Edges, step_ratio: float, most_rounds: int, target_frac: float) -> Counted:
    """x and the tracked mean gradient, mixed in each round; ``step_ratio`` is over one by L."""
    count, step = len(of.targets_ratio), step_ratio / float(of.steepness_ratio.max())
    matrix = laplacian(edges, count)
    weights = np.eye(count) - matrix / (float(np.diag(matrix).max()) + 1.0 / len(edges))
    x = np.zeros_like(of.targets_ratio)
    tracked = before = of.steepness_ratio * (x - of.targets_ratio)
    for number in range(1, most_rounds + 1):
        x = weights @ x - step * tracked
        gradient = of.steepness_ratio * (x - of.targets_ratio)
        tracked, before = weights @ tracked + gradient - before, gradient
        error = of.error_frac(x)
        if error <= target_frac:
            return Counted(num_gradients=number * count, num_messages=number * 2 * len(edges))
        if error > LOST:
            break
    return Counted(num_gradients=np.inf, num_messages=np.inf)
