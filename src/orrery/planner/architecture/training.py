"""Scores of small networks that are really trained: each by itself, or all with one set of shared weights.

Shared weights are trained with a path that is drawn at every step (single-path one-shot, arXiv 1904.00420); or with
the policy that draws it, so that policy and weights learn together (FLIQS, arXiv 2308.03290).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from orrery.numerics.adam import Adam
from orrery.numerics.experiments.fitting import Plan, answers, fit, loss_and_gradients
from orrery.numerics.experiments.steps import Pass
from orrery.numerics.experiments.tasks import Task
from orrery.numerics.learning.linear import Array
from orrery.planner.architecture.problem import Floats, Networks
from orrery.planner.architecture.toys import Path, Toy

Weights = dict[str, Array]
LEARNING_RATE = 1e-2
SHARED_RATIO = 10
"""Steps of shared weights, of which every path sees a part, over those of one network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingKnobs:
    """Steps of one network, points of a batch, and the seed of task, weights and batches."""

    steps: int = 60
    points: int = 64
    held_out: int = 512
    seed: int = 0

    def plan(self, ratio: int = 1) -> Plan:
        """The schedule of so many times the steps."""
        return Plan(
            steps=ratio * self.steps,
            points=self.points,
            learning_rate=LEARNING_RATE,
            seed=self.seed,
            held_out=self.held_out,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alone:
    """The score of every network trained by itself: less its held-out loss; each is trained once."""

    toy: Toy
    knobs: TrainingKnobs
    known: dict[bytes, float] = field(default_factory=dict[bytes, float])

    def __call__(self, networks: Networks) -> Floats:
        """The scores of networks, a line each."""
        return np.array([self._of(path) for path in networks])

    @property
    def num_trained(self) -> int:
        """Networks that were trained so far."""
        return len(self.known)

    def _of(self, path: Path) -> float:
        key = path.astype(np.int64).tobytes()
        if key not in self.known:
            task, rule_of = self.toy.task(self.knobs.seed), self.toy.rule_of(path)
            self.known[key] = -fit(self.toy.network(path), task, rule_of, self.knobs.plan()).held_out_loss
        return self.known[key]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """The score of every path with one set of weights."""

    toy: Toy
    knobs: TrainingKnobs
    weights: Weights
    known: dict[bytes, float] = field(default_factory=dict[bytes, float])

    def __call__(self, networks: Networks) -> Floats:
        """The scores of networks, a line each."""
        return np.array([self._of(path) for path in networks])

    def _of(self, path: Path) -> float:
        key = path.astype(np.int64).tobytes()
        if key not in self.known:
            task = self.toy.task(self.knobs.seed)
            logits, targets = answers(
                self.toy.network(path), self.weights, task, self.toy.rule_of(path), self.knobs.seed, self.knobs.held_out
            )
            self.known[key] = -task.loss(logits, targets)[0]
        return self.known[key]

    def replaced(self, parent: Path, num_alternatives: tuple[int, ...]) -> Floats:
        """Change of the parent's score by each alternative where it alone takes a place; nan where there is none."""
        table = np.full((len(num_alternatives), max(num_alternatives)), np.nan)
        base = self._of(parent)
        for choice, count in enumerate(num_alternatives):
            for alternative in range(count):
                path = parent.copy()
                path[choice] = alternative
                table[choice, alternative] = self._of(path) - base
        return table


Choose = Callable[[Weights, np.random.Generator], Path]
"""The path of a step, from the weights as they are."""


def shared_weights(toy: Toy, knobs: TrainingKnobs, choose: Choose) -> Weights:
    """Weights after training with a path a step."""
    plan, task = knobs.plan(SHARED_RATIO), toy.task(knobs.seed)
    first, batches, noise = (np.random.default_rng([knobs.seed, n]) for n in (4, 5, 6))
    weights: Weights = {
        name: (first.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32)
        for name, shape in toy.shapes.items()
    }
    adams = {name: Adam(rate=plan.learning_rate) for name in weights}
    for step in range(plan.steps):
        path = choose(weights, noise)
        x, targets = task.draw(plan.points, batches)
        network, rule_of = toy.network(path), toy.rule_of(path)
        _, gradients = loss_and_gradients(network, weights, x, targets, task.loss, rule_of, noise)
        descend(weights, gradients, adams, plan.rate(step))
    return weights


def descend(weights: Weights, gradients: Weights, adams: dict[str, Adam], rate: float) -> None:
    """One step of Adam for the weights that have a gradient."""
    for name, gradient in gradients.items():
        adams[name].rate = rate
        weights[name] = (weights[name] - adams[name].step(gradient.astype(np.float64))).astype(np.float32)


def even(num_alternatives: tuple[int, ...]) -> Choose:
    """Paths drawn evenly."""
    counts = np.array(num_alternatives)
    return lambda weights, rng: rng.integers(counts)


def path_loss(toy: Toy, weights: Weights, path: Path, task: Task, x: Array, targets: Array, seed: int) -> float:
    """The loss of one batch by one path, nothing learnt."""
    run = Pass(weights=weights, rule_of=toy.rule_of(path), rng=np.random.default_rng([seed, 8]))
    return task.loss(toy.network(path).step(run)(x)[0], targets)[0]
