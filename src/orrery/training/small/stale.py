"""Local steps with outer updates one round late, so that the all-reduce of a round runs under the next one's steps.

In round t every worker takes tau steps of its own from x_t; the sum of its steps is its delta. While it does so, the
mean delta of round t - 1 arrives, and the outer update uses that one:

    gap_t = |x_t - x_{t-1}| / |delta_{t-1}|           how far the model moved since that delta began, in its own length
    m_t   = beta m_{t-1} + delta_{t-1} / (1 + gap_t)   staleness penalty; then |m_t| is cut to c |delta_{t-1}|
    x_t+1 = x_t - alpha m_t

The late update, a penalty that grows with the gap and the cut momentum are [sun-2024]'s; this form of the penalty, and
cutting relative to the delta, are assumed.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.small.data import Floats
from orrery.training.small.workers import LEARNING_RATE, Workers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Descent:
    """Losses on the whole training set: at the start and after every round, that is every tau steps."""

    losses_ratio: Floats  # with stale outer updates
    synchronous_losses_ratio: Floats  # gradients averaged over the workers in every step


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterKnobs:
    """The outer update."""

    step_ratio: float = 1.0  # alpha
    momentum_ratio: float = 0.5  # beta
    is_penalised: bool = True
    clip_ratio: float = 1.0  # inf cuts nothing

    def __post_init__(self) -> None:
        if not 0.0 <= self.momentum_ratio < 1.0 or self.step_ratio <= 0.0 or self.clip_ratio <= 0.0:
            raise ScenarioError(f"stale descent: {self}; write momentum in [0, 1), step and clip above zero.")


def stale_outer_descent(
    *, num_workers: int = 4, local_steps: int = 4, rounds: int = 40, seed: int = 0, knobs: OuterKnobs | None = None
) -> Descent:
    """Both ways from the same start, with the same batches for every worker and step."""
    if min(num_workers, local_steps, rounds) < 1:
        raise ScenarioError(
            f"stale descent: {num_workers} workers, {local_steps} steps, {rounds} rounds; write 1 or more of each."
        )
    problem = Workers(num_workers, seed)
    return Descent(
        losses_ratio=_stale(problem, local_steps, rounds, knobs or OuterKnobs()),
        synchronous_losses_ratio=_synchronous(problem, local_steps, rounds),
    )


def _synchronous(problem: Workers, local_steps: int, rounds: int) -> Floats:
    x, losses = problem.start.copy(), [problem.loss(problem.start)]
    for step in range(rounds * local_steps):
        x -= LEARNING_RATE * np.mean([problem.gradient(x, w, step) for w in range(problem.num_workers)], axis=0)
        if (step + 1) % local_steps == 0:
            losses.append(problem.loss(x))
    return np.array(losses)


def _stale(problem: Workers, local_steps: int, rounds: int, knobs: OuterKnobs) -> Floats:
    x = before = problem.start
    momentum = np.zeros_like(x)
    arriving: Floats | None = None
    losses = [problem.loss(x)]
    for r in range(rounds):
        delta = np.mean(
            [_local(problem, x, w, r * local_steps, local_steps) for w in range(problem.num_workers)], axis=0
        )
        if arriving is not None:
            momentum = _momentum(momentum, arriving, float(np.linalg.norm(x - before)), knobs)
            before, x = x, x - knobs.step_ratio * momentum
        arriving = delta
        losses.append(problem.loss(x))
    return np.array(losses)


def _local(problem: Workers, start: Floats, worker: int, first: int, steps: int) -> Floats:
    """Change of the vector by the worker's own steps."""
    x = start.copy()
    for step in range(first, first + steps):
        x -= LEARNING_RATE * problem.gradient(x, worker, step)
    return start - x


def _momentum(momentum: Floats, arrived: Floats, moved: float, knobs: OuterKnobs) -> Floats:
    """The outer momentum with the late delta, penalised and cut."""
    length = float(np.linalg.norm(arrived))
    if length == 0.0:
        return knobs.momentum_ratio * momentum
    penalty = 1.0 + moved / length if knobs.is_penalised else 1.0
    found = knobs.momentum_ratio * momentum + arrived / penalty
    return found * min(1.0, knobs.clip_ratio * length / max(float(np.linalg.norm(found)), np.finfo(np.float64).tiny))
