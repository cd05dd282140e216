"""Searching for cells with a learned latency in the loss: how much faster they become, and what quality it costs.

A perceptron learns the latency of DARTS cells on a P100 from drawn networks; its output joins a differentiable search
whose quality is a stated stand-in (``cells.proxy``). The same search with multiply-adds in the loss stands beside it.
Latencies in the rows are the machine's own, not the perceptron's. [xu-2020-latency-aware-nas]
"""

from typing import Any

import numpy as np

from orrery.base.experiment import Experiment, Progress, Row, counter
from orrery.catalog.devices import get_device
from orrery.predictors.cells.darts import darts
from orrery.predictors.cells.latency import Floats, Plan
from orrery.predictors.cells.learned import Bench, OnStep
from orrery.predictors.cells.pool import bench
from orrery.predictors.cells.proxy import AFFINITY_SPREAD, Proxy, draw_proxy
from orrery.predictors.cells.search import search
from orrery.predictors.cells.space import Cells
from orrery.predictors.cells.techniques.encoded_perceptron import EncodedPerceptron, PerceptronKnobs, fit_perceptron
from orrery.predictors.learn.extra import learning_package
from orrery.predictors.studies.cell_latency import BATCHES, DEVICE

NUM_SAMPLES = 40_000
NUM_TASKS = 8
SEARCH_STEPS = 150
WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""Weights of the term in the loss, in units of a mean network's latency or work."""

TERMS = ("latency", "multiply-adds")

NUM_RANDOM = 24
"""Networks of which the best is what a search has to beat, as DARTS compares itself."""

EQUAL_FRAC = 0.09 / (3.29 - 2.76)
"""Share of what a search gains over the best of 24 drawn networks that repeated training leaves open: DARTS reports
2.76 +- 0.09 % of errors on CIFAR-10 against 3.29 % (as recalled of its table 1)."""


def run(seed: int, steps: int, progress: Progress) -> tuple[Row, ...]:
    """A row for every term and weight: means over tasks."""
    tick = counter(progress, steps + SEARCH_STEPS)
    return searched(bench(get_device(DEVICE), darts(), BATCHES[0]), seed, steps, tick)


def searched(
    machine: Bench, seed: int, steps: int, tick: OnStep, affinity_spread: float = AFFINITY_SPREAD
) -> tuple[Row, ...]:
    """The same on any machine, with tasks that differ more or less."""
    rng = np.random.default_rng([seed, 51])
    samples = machine.samples(darts().draw(NUM_SAMPLES, rng), rng)
    learned = fit_perceptron(samples, PerceptronKnobs(steps=steps, seed=seed), tick)
    tasks = draw_proxy(NUM_TASKS, rng, affinity_spread)
    runs = tasks.repeated(len(TERMS) * len(WEIGHTS))
    weights = np.tile(WEIGHTS, NUM_TASKS * len(TERMS))
    by_latency = np.tile(np.repeat([1.0, 0.0], len(WEIGHTS)), NUM_TASKS)
    constant, each = _work(machine.truth.plan, samples.cells)

    def loss(lines: Any) -> Any:
        term = by_latency * _latency(learned, lines) + (1.0 - by_latency) * (constant + lines @ each)
        return weights * term - runs.quality(lines)

    cells = search(darts(), loss, len(weights), SEARCH_STEPS, rng, tick)
    return _rows(machine, cells, runs, _drawn_quality(tasks, rng))


def _latency(learned: EncodedPerceptron, lines: Any) -> Any:
    """As the perceptron says, in units of a drawn network's."""
    return learning_package("autograd.numpy").exp(learned.log_latency(lines) - learned.log_mean_ratio)


def _work(plan: Plan, drawn: Cells) -> tuple[float, Floats]:
    """Multiply-adds in units of a drawn network's, as a constant and a weight for every column."""
    mean = float(plan.total(plan.flops, drawn).mean())
    return plan.by_column(plan.flops / mean)


def _drawn_quality(tasks: Proxy, rng: np.random.Generator) -> Floats:
    """Quality of the best of ``NUM_RANDOM`` drawn networks, by task."""
    lines = darts().encode(darts().draw(NUM_TASKS * NUM_RANDOM, rng))
    return tasks.repeated(NUM_RANDOM).quality(lines).reshape(NUM_TASKS, NUM_RANDOM).max(axis=1)


def _rows(machine: Bench, cells: Cells, runs: Proxy, drawn: Floats) -> tuple[Row, ...]:
    """Means over tasks, beside the search without a term."""
    shape = (NUM_TASKS, len(TERMS), len(WEIGHTS))
    plan = machine.truth.plan
    quality, latency_s, flops = (
        values.reshape(shape)
        for values in (
            runs.quality(darts().encode(cells)),
            machine.truth.latency_s(cells),
            plan.total(plan.flops, cells),
        )
    )
    lost = (quality[..., :1] - quality) / (quality[..., :1] - drawn[:, None, None])
    return tuple(
        {
            "term": term,
            "weight": weight,
            "quality_lost_frac": float(lost[:, t, w].mean()),
            "latency_s": float(latency_s[:, t, w].mean()),
            "latency_reduction_frac": float(np.mean(1.0 - latency_s[:, t, w] / latency_s[:, t, 0])),
            "work_reduction_frac": float(np.mean(1.0 - flops[:, t, w] / flops[:, t, 0])),
        }
        for t, term in enumerate(TERMS)
        for w, weight in enumerate(WEIGHTS)
    )


EXPERIMENT = Experiment(
    name="latency-aware-search",
    question="How much faster are cells that were searched with their latency in the loss?",
    run=run,
    num_steps=1000,
    claims=("xu-2020-latency-aware-nas",),
)
