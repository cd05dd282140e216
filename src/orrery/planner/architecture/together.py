"""Searches that train weights and architecture together: a policy with its weights, and paths behind binary gates.

Gates keep two sampled paths of every choice: one runs, and the gradient of its gate is compared with the other's,

    dL/da_i = sum over the two of dL/dg_j p_j ([i = j] - p_i),   dL/dg_j = <dL/dy, o_j>,

while weights are trained with one path, as in [cai-2019-proxylessnas]. What the network costs joins the same gradient
through its table.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orrery.numerics.adam import Adam
from orrery.numerics.experiments.steps import Back, Pass, Step, chain, residual, rms_norm
from orrery.numerics.learning.linear import Array
from orrery.planner.architecture.exact import signed
from orrery.planner.architecture.gradient import drawn_from, shares_of
from orrery.planner.architecture.policy import Policy, PolicyKnobs, fines
from orrery.planner.architecture.problem import Floats, Networks, Problem, sign
from orrery.planner.architecture.toys import Path, Toy, Twin
from orrery.planner.architecture.training import (
    SHARED_RATIO,
    TrainingKnobs,
    Weights,
    descend,
    path_loss,
    shared_weights,
)

DRAWS = 4
"""Paths that the policy is rewarded for at every step."""

LIMIT_WEIGHT_RATIO = 10.0
"""Penalty for exceeding a limit by its own size, relative to the loss."""

WARM_FRAC = 0.25
"""Share of the steps in which only weights learn: before that, losses say little of paths."""


def by_policy_and_weights(
    problem: Problem, toy: Toy, limits: Mapping[str, float], training: TrainingKnobs, knobs: PolicyKnobs
) -> Networks:
    """The likeliest network, then what the policy drew, the second half and the most frequent first.

    Weights are trained on its draws all along.
    """
    policy = Policy(problem.num_alternatives, knobs.step_ratio, np.random.default_rng([knobs.seed, 81]))
    task, batches = toy.task(training.seed), np.random.default_rng([training.seed, 82])
    steps, done = SHARED_RATIO * training.steps, 0
    late: list[Networks] = []

    def choose(weights: Weights, rng: np.random.Generator) -> Path:
        nonlocal done
        done += 1
        drawn = policy.draw(DRAWS)
        if done > WARM_FRAC * steps:
            x, targets = task.draw(training.points, batches)
            losses = np.array([path_loss(toy, weights, path, task, x, targets, training.seed) for path in drawn])
            late.append(drawn)
            policy.learn(drawn, -np.log(losses + 1e-12) - fines(problem, drawn, limits, knobs))
        return drawn[0]

    shared_weights(toy, training, choose)
    half = len(late) // 2
    return np.concatenate([policy.likeliest, *(often(np.concatenate(part)) for part in (late[half:], late[:half]))])


def often(networks: Networks) -> Networks:
    """Every network once, the most frequent first."""
    found, counts = np.unique(networks, axis=0, return_counts=True)
    return found[np.argsort(-counts, kind="stable")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Gated:
    """Two paths of a twin: the first runs, and the gates of both get a gradient."""

    twin: Twin
    paths: Networks  # two lines
    slopes: Floats  # (two, choices): dL/dg, filled on the way back

    def step(self, run: Pass) -> Step:
        """The first path's network."""
        choices = range(len(self.twin.hidden))
        return chain(run.linear("in"), *(residual(self._gate(run, c)) for c in choices), rms_norm, run.linear("out"))

    def _gate(self, run: Pass, choice: int) -> Step:
        first, second = (self.twin.branch(run, choice, int(path[choice])) for path in self.paths)

        def step(x: Array) -> tuple[Array, Back]:
            y, back = first(x)
            other = second(x)[0]

            def back_with_gates(dy: Array) -> Array:
                self.slopes[:, choice] = float((dy * y).sum()), float((dy * other).sum())
                return back(dy)

            return y, back_with_gates

        return step


def by_gated_paths(problem: Problem, twin: Twin, limits: Mapping[str, float], training: TrainingKnobs) -> Networks:
    """The networks that are likeliest or drawn in the second half, the most often first; weights and gates in turn."""
    counts = problem.num_alternatives
    logits = np.where(np.arange(max(counts)) < np.array(counts)[:, None], 0.0, -np.inf)
    task, rng = twin.task(training.seed), np.random.default_rng([training.seed, 83])
    plan, adam = training.plan(SHARED_RATIO), Adam(rate=0.02)
    weights: Weights = {
        name: (rng.standard_normal(shape) / np.sqrt(shape[1])).astype(np.float32) for name, shape in twin.shapes.items()
    }
    adams = {name: Adam(rate=plan.learning_rate) for name in weights}
    passed: list[Path] = []
    for step in range(plan.steps):
        shares = shares_of(logits)
        paths = drawn_from(shares, 2, rng)
        x, targets = task.draw(plan.points, rng)
        gated = _Gated(twin=twin, paths=paths, slopes=np.zeros((2, len(logits))))
        run = Pass(weights=weights, rule_of=twin.rule_of(paths[0]), rng=rng)
        outputs, back = gated.step(run)(x)
        back(task.loss(outputs, targets)[1])
        descend(weights, run.gradients, adams, plan.rate(step))
        if step > WARM_FRAC * plan.steps:
            gradient = _gates(shares, paths, gated.slopes) + LIMIT_WEIGHT_RATIO * _passing(problem, shares, limits)
            logits = logits - adam.step(gradient)
            passed.append(logits.argmax(axis=1))
            passed.append(paths[0])
    return often(np.array(passed[len(passed) // 2 :]))


def _gates(shares: Floats, paths: Networks, slopes: Floats) -> Floats:
    """The gradient of both sampled alternatives' logits, their probabilities scaled to add up to one."""
    found, rows = np.zeros_like(shares), np.arange(len(shares))
    pair = np.stack([shares[rows, path] for path in paths])
    pair = pair / pair.sum(axis=0)
    mean = (pair * slopes).sum(axis=0)
    for path, p, slope in zip(paths, pair, slopes, strict=True):
        np.add.at(found, (rows, path), np.where(paths[0] == paths[1], 0.0, p * (slope - mean)))
    return found


def _passing(problem: Problem, shares: Floats, limits: Mapping[str, float]) -> Floats:
    """The slope of what passes a limit, by the tables' expectation."""
    total = np.zeros_like(shares)
    for name, limit in limits.items():
        table = np.nan_to_num(signed(problem, name))
        expected = sign(name) * problem.metrics[name].constant + float((shares * table).sum())
        if expected > sign(name) * limit:
            slope = table / (abs(limit) or 1.0)
            total += shares * (slope - (shares * slope).sum(axis=1, keepdims=True))
    return total
