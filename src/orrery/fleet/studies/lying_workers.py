"""Training while some workers lie about their gradients, by the rule that joins what they send."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, counter, numbers, whole
from orrery.engine.streams import stream
from orrery.fleet.decentral.aggregators import AGGREGATORS, Aggregator, flag
from orrery.fleet.decentral.compressor import Floats
from orrery.training.small.points import points_of
from orrery.training.small.workers import LEARNING_RATE, Workers

Lie = Literal["random", "flipped"]
LIES: tuple[Lie, ...] = get_args(Lie)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Workers; comma-separated numbers of liars; what they send, how long against the honest mean; dimensions."""

    workers: int = 12
    liars: str = "0,2,4"
    lie: str = "random"  # or "flipped": minus the honest mean
    length_ratio: float = 10.0
    dimensions: str = "1,3,7"  # of the flag's subspace


def run(request: Run) -> tuple[Row, ...]:
    """A row a rule and number of liars: the loss over that at the start, and the share of points that are right."""
    sizes: Sizes = request.sizes
    workers = whole("workers", sizes.workers, least=3, most=64)
    most = (workers - 1) // 2
    many = [whole("liars", int(n), least=0, most=most) for n in numbers("liars", sizes.liars, most=most)]
    if sizes.lie not in LIES or not 0.0 < sizes.length_ratio <= 1e6:
        raise ScenarioError(f"set: write lie as {' or '.join(LIES)}, and length_ratio above 0, at most 1e6.")
    sides = [whole("dimensions", int(n), most=workers) for n in numbers("dimensions", sizes.dimensions, least=1)]
    rules = {**AGGREGATORS, **{f"flag of {side}": partial(_flag, side) for side in sides}}
    data = points_of(request.data, request.seed) if request.data else None
    tick = counter(request.progress, len(many) * len(rules))
    problem = Workers(workers, request.seed, data)
    return tuple(
        _row(problem, sizes, request.steps, count, name, rule, tick) for count in many for name, rule in rules.items()
    )


def _flag(num_dimensions: int, sent: Floats, num_liars: int) -> Floats:
    """The flag does not ask how many lie."""
    return flag(sent, num_dimensions)


def _row(
    problem: Workers, sizes: Sizes, steps: int, count: int, name: str, rule: Aggregator, tick: Callable[[], None]
) -> Row:
    x = problem.start.copy()
    for step in range(steps):
        sent = np.array([problem.gradient(x, worker, step) for worker in range(problem.num_workers)])
        x -= LEARNING_RATE * rule(_with_lies(sent, count, sizes, stream(problem.seed, f"lies/{step}")), count)
        if not np.isfinite(x).all():
            break
    tick()
    is_kept = bool(np.isfinite(x).all())
    return {
        "rule": name,
        "liars": count,
        "loss_ratio": problem.loss(x) / problem.loss(problem.start) if is_kept else float("nan"),
        "accuracy_frac": problem.right_frac(x) if is_kept else 0.0,
    }


def _with_lies(honest: Floats, count: int, sizes: Sizes, draw: np.random.Generator) -> Floats:
    """The vectors that are sent; the last ``count`` workers lie."""
    if not count:
        return honest
    sent, truth = honest.copy(), honest[: len(honest) - count].mean(axis=0)
    if sizes.lie == "flipped":
        sent[-count:] = -sizes.length_ratio * truth
    else:
        noise = draw.standard_normal((count, honest.shape[1]))
        sent[-count:] = (
            sizes.length_ratio * np.linalg.norm(truth) * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        )
    return sent


EXPERIMENT = Experiment(
    name="lying-workers",
    question="Which way of joining gradients still learns when some workers lie?",
    run=run,
    num_steps=150,
    claims=("flag-aggregator",),
    sizes=Sizes,
    reads=("data",),
    keys=("rule", "liars"),
    curve=("liars", "loss_ratio"),
)
